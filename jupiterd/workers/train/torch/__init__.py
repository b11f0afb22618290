"""What torch's ranks need of their own, beside the engine."""
