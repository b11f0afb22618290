"""Options that several commands share, and the values for shell completion."""
