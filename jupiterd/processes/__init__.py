"""Worker processes: their environment, their start, their end."""
