"""Alarms that people have seen, and how each kind ends."""
