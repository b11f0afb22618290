"""What jupiterctl prints: the console, and documents as lines and tables."""
