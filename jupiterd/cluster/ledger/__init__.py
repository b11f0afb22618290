"""Signed entries, and the state that they add up to."""
