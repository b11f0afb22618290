"""Attempts of one gang, from its ranks' orders to recorded checkpoints."""
