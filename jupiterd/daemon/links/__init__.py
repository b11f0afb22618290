"""One link for each peer: how its machine is found, and why it can't be reached."""
