"""Packing: text is written as tokens in shards, and a part of it is held out."""
