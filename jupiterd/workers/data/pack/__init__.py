"""Packing: text becomes tokens in shards, and a part of it is held out."""
