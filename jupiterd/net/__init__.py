"""Finding peers, proving who they are, and speaking with them."""
