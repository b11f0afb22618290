"""Starts worker processes and launched scripts, sets their environment, and ends them."""
