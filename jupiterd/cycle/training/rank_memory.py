"""Which micro batch there is room for, when it is known what a rank needs with each.

Owns that choice. Pure. Doesn't know models (`cycle.training.memory` does), nor who asks.
"""

from collections.abc import Sequence
from typing import Final

RESERVED_SHARE: Final = 0.1
"""Of a device's memory: the framework's own, and what lies unused between tensors."""

Need = tuple[int, int]
"""A micro batch, and the bytes that one rank needs with it."""


def first_that_fits(
    needs: Sequence[Need], ranks: int, free_bytes: int, reserved_bytes: int
) -> int | None:
    """Return the first micro batch with which so many ranks have room on one device together."""
    room = free_bytes - reserved_bytes
    return next((size for size, each_bytes in needs if ranks * each_bytes <= room), None)
