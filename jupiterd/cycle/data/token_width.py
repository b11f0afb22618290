"""How many bytes an id of a token takes on disk: as many as the vocabulary needs.

Owns that choice. Doesn't know files: who writes shards asks, and who forecasts their size.
"""

from typing import Final

NARROW_BYTES: Final = 2
WIDE_BYTES: Final = 4

NARROW_VOCAB: Final = 1 << 16
"""The most entries whose ids fit two bytes."""


def token_bytes(vocab_size: int) -> int:
    """Return the bytes of an id, for ids below `vocab_size`."""
    return NARROW_BYTES if vocab_size <= NARROW_VOCAB else WIDE_BYTES
