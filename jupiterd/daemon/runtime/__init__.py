"""What the daemon runs on: its folder, before anything is kept there."""
