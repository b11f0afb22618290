"""What lies on this node's disk: the ledger and the artifacts."""
