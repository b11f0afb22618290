"""Tests with a model and documents that people use: minutes each, for `make test-real` alone."""
