"""Collecting: one data source becomes samples."""
