"""`jupiterctl node`."""
