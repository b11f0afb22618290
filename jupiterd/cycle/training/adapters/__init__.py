"""Adapters that are trained beside frozen weights: which there are, and how large."""
