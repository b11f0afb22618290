"""Collectors: one file for each kind of data source."""
