"""Models of the Hugging Face hub: found, looked at, and fetched into this machine's cache."""
