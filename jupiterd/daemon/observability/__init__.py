"""What a daemon tells of itself and its cluster to whoever watches."""
