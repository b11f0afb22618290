"""What this node knows of its cluster beside the ledger: who is here, who leads, what is wrong."""
