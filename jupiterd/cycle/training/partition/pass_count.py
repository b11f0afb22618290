"""How many micro batches every rank passes through a model that is cut over them.

Owns that number. Pure. Where gradients or weights are cut, ranks exchange them with each pass, so
all must make as many; one with fewer sequences makes the rest with nothing that counts.
"""

from collections.abc import Sequence
from itertools import pairwise


def pass_count(sequences: Sequence[int], micro_batches: Sequence[int]) -> int:
    """Return as many passes as the rank with the most needs, one at the least.

    sequences: of each rank; micro_batches: the most that each rank holds at a time
    """
    pairs = zip(sequences, micro_batches, strict=True)
    return max(1, *(-(-count // most) for count, most in pairs))


def slices(count: int, passes: int) -> list[slice]:
    """Return which of so many sequences go through in each pass: about as many in each, or none."""
    bounds = [count * number // passes for number in range(passes + 1)]
    return [slice(*bound) for bound in pairwise(bounds)]
