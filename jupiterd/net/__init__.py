"""Finds peers, proves their identity, and exchanges messages with them."""
