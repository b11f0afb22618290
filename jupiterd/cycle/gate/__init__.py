"""The gate: whether a candidate may replace the generator, decided by held-out real text."""
