"""What somebody does on the first day, right and wrong."""
