"""Samples on disk, as all workers read and write them."""
