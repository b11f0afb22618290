"""Jupiter: one cluster out of the machines people own."""

__version__ = "0.2.0"
