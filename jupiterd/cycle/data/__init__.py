"""Text as data: how it is split, mixed and purged, where it came from, what was used."""
