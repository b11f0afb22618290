"""Several gangs that train one model."""
