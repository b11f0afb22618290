"""A page about one cycle, as one file without external resources."""
