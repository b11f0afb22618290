"""Encrypted tunnels between two nodes, for what knows no encryption."""
