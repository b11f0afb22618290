"""Daemons under attack by machines that nobody has let in."""
