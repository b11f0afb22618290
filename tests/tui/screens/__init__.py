"""Each screen, its keys and its panels."""
