"""`jupiterctl cycle` and `jupiterctl gate`."""
