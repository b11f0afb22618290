"""What this node knows of its cluster besides the ledger: who is here, who leads, what is wrong."""
