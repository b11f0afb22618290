"""Deduplication: of texts that are nearly the same, one is left."""
