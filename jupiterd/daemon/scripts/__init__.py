"""Other people's programs on this machine."""
