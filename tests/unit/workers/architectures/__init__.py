"""Tests of other people's architectures."""
