"""Collecting, filtering and packing text."""
