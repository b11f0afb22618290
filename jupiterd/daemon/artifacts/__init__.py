"""Artifacts on this node: fetched, served, exported and given up."""
