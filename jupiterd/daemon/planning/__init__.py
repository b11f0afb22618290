"""Who could train, on what, and how fast."""
