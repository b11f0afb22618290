"""Real daemons with real packets, each on a machine that is a network namespace."""
