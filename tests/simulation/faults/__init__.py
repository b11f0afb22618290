"""Faults that are planted in the real code, each of which must be noticed."""
