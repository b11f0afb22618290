"""`jupiterctl model`: lists, shows, exports and promotes models."""
