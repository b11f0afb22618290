"""The dashboard in a browser."""
