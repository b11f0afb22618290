"""Engines of this machine: what each needs, its process, and requests to it."""
