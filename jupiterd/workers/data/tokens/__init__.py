"""Tokenizers as models bring them: in older forms, and with marks of their own."""
