"""The order in which sequences are trained on: a keyed permutation, in constant memory.

Owns the permutation and how it goes on past the end of a pass. Doesn't know shards, ranks or
batches. A Feistel network over BLAKE3 permutes the smallest power of four that holds every index;
what falls outside [0, n) is permuted again until it falls inside (cycle walking).
"""

from collections.abc import Iterator

from blake3 import blake3

from jupiterd.errors import Bug

ROUNDS = 4
"""Feistel rounds; three already give a pseudorandom permutation, one more costs a microsecond."""


def permuted(index: int, n: int, key: bytes) -> int:
    """Return where the permutation of [0, n) under `key` sends `index`.

    Raises:
        Bug: the index lies outside [0, n).
    """
    if not 0 <= index < n:
        raise Bug(f"index {index} lies outside a permutation of {n}")
    half_bits = half_bits_of(n)
    value = _shuffled(index, half_bits, key)
    while value >= n:
        value = _shuffled(value, half_bits, key)
    return value


def sequences_at(start: int, count: int, n: int, seed: str) -> Iterator[int]:
    """Yield the sequences (of n) that stand at positions [start, start + count) of the order.

    Each pass over the n sequences has its own permutation, so the order never ends.
    """
    for position in range(start, start + count):
        number_of_pass, index = divmod(position, n)
        yield permuted(index, n, pass_key(seed, number_of_pass))


def pass_key(seed: str, number_of_pass: int) -> bytes:
    """Return the key of one pass's permutation."""
    return f"{seed}/pass {number_of_pass}".encode()


def half_bits_of(n: int) -> int:
    """Return how many bits half an index of the permutation of [0, n) has."""
    return max(1, ((n - 1).bit_length() + 1) // 2)


def _shuffled(value: int, half_bits: int, key: bytes) -> int:
    mask = (1 << half_bits) - 1
    left, right = value >> half_bits, value & mask
    for number in range(ROUNDS):
        left, right = right, left ^ (mixed(right, number, key) & mask)
    return left << half_bits | right


def mixed(half: int, number: int, key: bytes) -> int:
    """Return what round `number` makes of half an index; its lowest bits are used."""
    message = len(key).to_bytes(4, "big") + key + bytes([number]) + half.to_bytes(8, "big")
    return int.from_bytes(blake3(message).digest(length=8), "big")
