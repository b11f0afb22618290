"""`jupiterctl model chat`: a conversation with a model, or one answer of it, at a terminal."""
