"""`jupiterctl model`."""
