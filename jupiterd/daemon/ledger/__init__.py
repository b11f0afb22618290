"""This node's replica of the ledger, and how replicas become equal."""
