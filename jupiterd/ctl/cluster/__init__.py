"""`jupiterctl cluster`: shows, opens, merges and leaves clusters, and switches branches."""
