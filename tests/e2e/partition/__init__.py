"""Models that are cut over machines, on real daemons."""
