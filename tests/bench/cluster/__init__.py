"""How fast and how cheap the cluster's core is: `make bench-cluster`."""
