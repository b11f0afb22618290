"""`jupiterctl data`."""
