"""Filtering: what of the text is worth training on."""
