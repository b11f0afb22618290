"""Text as tokens: tokenizers, their marks, and packed tokens on disk; for all workers."""
