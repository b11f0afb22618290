"""What the cluster has: models that were brought, data sets, and whether they belong together."""
