"""Launched scripts: what they find around them, their keeper, and what is heard of them."""
