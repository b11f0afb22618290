"""`jupiterctl cluster`."""
