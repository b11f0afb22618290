"""`jupiterctl train`."""
