"""Checks before a command costs anything: sources, and whether they suffice for a verdict."""
