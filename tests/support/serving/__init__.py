"""Engines for tests of whatever stands before them."""
