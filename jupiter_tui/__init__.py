"""The dashboard: what the local daemon says, on two screens of a terminal."""
