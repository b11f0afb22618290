"""Benchmarks: they print figures beside their goals, and are no tests."""
