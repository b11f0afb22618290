"""Models that tests cut over ranks of torch."""
