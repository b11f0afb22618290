"""Real daemons for tests, on this machine, and what surrounds them."""
