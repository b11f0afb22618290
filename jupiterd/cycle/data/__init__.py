"""Text as data: what is held out of it, and what it can show."""
