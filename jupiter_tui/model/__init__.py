"""What the dashboard knows: the daemon's documents, their feed, recordings."""
