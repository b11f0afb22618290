"""Killing what runs a cycle, and what must hold of the cycle at its end."""
