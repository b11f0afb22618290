"""Training one rank of a gang."""
