"""Writes GGUF files with the format's own library, for known architectures and tokenizers."""
