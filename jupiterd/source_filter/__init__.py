"""Sockets that hear some addresses alone: the kernel drops what others send."""
