"""The paths to peers, and how good they are."""
