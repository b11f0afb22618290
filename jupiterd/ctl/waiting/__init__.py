"""Follows work to its end, and waits until ordered changes have taken effect."""
