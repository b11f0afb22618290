"""Doing orders on this node: workers, ranks, their inputs and their devices."""
