"""Pairs of texts that a judge model compares: how they are made, asked about and kept. Pure."""
