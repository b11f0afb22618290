"""Driving cycles and runs through their phases."""
