"""Merging the ways of all islands, a part of the vector by each of them.

Owns what the owner of a part does. Doesn't know how ways travel, or who owns which part.

Each island sends every owner its part; the owner takes the mean, packs it once more, with an error
feedback of its own, and all take the same result (a reduce-scatter and an all-gather by hand). So
what goes over a link is twice the vector, whatever the number of islands.
"""

from collections.abc import Sequence

from jupiterd.workers.islands.outer_step import mean_way
from jupiterd.workers.islands.packing import Kind, Packed, Packer


class Merger:
    """The owner of one part."""

    def __init__(self, size: int, kind: Kind = "int8") -> None:
        self.packer = Packer(size, kind)

    def merged(self, ways: Sequence[Packed], tokens: Sequence[int]) -> Packed:
        """Return the mean of that part of all ways, in the islands' order, as all will see it."""
        return self.packer.packed(mean_way([way.restored() for way in ways], tokens))
