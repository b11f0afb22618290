"""GGUF files by the format's own library, for architectures and tokenizers that are known here."""
