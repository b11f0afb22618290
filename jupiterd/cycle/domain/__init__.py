"""What a model is to become an expert in, and from which sources."""
