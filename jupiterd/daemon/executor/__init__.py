"""Doing an order on this node: what it may read here."""
