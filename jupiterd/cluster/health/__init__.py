"""What is wrong with the cluster, and whom to alert."""
