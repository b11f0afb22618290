"""Where copies of artifacts must lie, and which are needed no more."""
