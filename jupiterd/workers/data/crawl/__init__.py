"""Fetching from strangers: pages, repositories, and what they allow."""
