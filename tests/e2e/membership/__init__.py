"""Daemons that meet, let in, keep out and unite."""
