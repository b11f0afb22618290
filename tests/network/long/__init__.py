"""What takes too long for `make test`: `make test-network` runs it."""
