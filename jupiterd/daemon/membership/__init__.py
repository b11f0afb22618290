"""Who belongs to this node's cluster, and who is trusted in it."""
