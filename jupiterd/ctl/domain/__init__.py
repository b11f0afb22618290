"""`jupiterctl domain`: lists, checks and writes domain files."""
