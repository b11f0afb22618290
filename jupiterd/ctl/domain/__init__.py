"""`jupiterctl domain`."""
