"""Measuring models on held-out text."""
