"""What a CUDA card shows of Jupiter, in one call of under nine minutes: `make gpu-check`."""
