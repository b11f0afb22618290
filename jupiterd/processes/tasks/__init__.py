"""Workers that answer what tasks ask a model."""
