"""Sizes of micro batches that cut a rank's part of a step into equal parts.

Pure. Owns which sizes are worth a try. Doesn't know devices or speeds.

A rank cuts its sequences into as few parts as can be, all about alike (`RankBatches`), so that of
64 sequences 33 to 63 at a time are the same as 32: what counts is the number of parts.
"""

from collections.abc import Callable


def size_of(sequences: int, parts: int) -> int:
    """Return the sequences of the largest of so many parts."""
    return -(-sequences // parts)


def doubling_sizes(sequences: int) -> list[int]:
    """Return the sizes of 1, 2, 4 ... parts, the smallest size first."""
    sizes = {size_of(sequences, 1 << n) for n in range(sequences.bit_length())}
    return sorted(sizes | {1})


def size_between(sequences: int, small: int, large: int) -> int | None:
    """Return a size between two others, as far from either as can be; None: there is none."""
    if large - small < 2:
        return None
    few, many = size_of(sequences, large), size_of(sequences, small)
    middle = (few + many) // 2
    for parts in (*range(middle, many), *range(middle, few, -1)):
        if small < (size := size_of(sequences, parts)) < large:
            return size
    return None


def largest_size(sequences: int, fits: Callable[[int], bool]) -> int:
    """Return the largest size that fits, by halving what lies between; 1 where none does.

    fits: whether a size does; all smaller ones do, too
    """
    if fits(sequences):
        return sequences
    small, large = 1, sequences
    while (between := size_between(sequences, small, large)) is not None:
        small, large = (between, large) if fits(between) else (small, between)
    return small
