"""The loss on held-out text while a rank trains."""
