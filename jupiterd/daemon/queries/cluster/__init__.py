"""Documents about the cluster and its machines."""
