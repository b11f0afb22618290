"""Models of the Hugging Face hub: look-up, checks, and download into this machine's cache."""
