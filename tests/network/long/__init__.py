"""What takes too long for `make test-all`: `make test-network` runs it."""
