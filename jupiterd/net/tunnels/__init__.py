"""Encrypted tunnels between two nodes, for programs that don't encrypt."""
