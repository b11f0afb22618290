"""Training a model on torch that is cut over the ranks of a gang."""
