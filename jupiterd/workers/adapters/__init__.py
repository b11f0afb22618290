"""Models of an adapter and its base, for whoever computes with one."""
