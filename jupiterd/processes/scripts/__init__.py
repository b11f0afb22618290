"""Launched scripts: their environment, their supervisor, and the events of their ranks."""
