"""Documents about cycles, runs, data and models."""
