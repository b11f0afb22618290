"""Machines that are network namespaces, and what befalls them and their links."""
