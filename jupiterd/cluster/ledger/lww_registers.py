"""Cells that end up with the same content however often and in whatever order facts are offered.

Owns the two rules that decide between facts of one key, and canonical bytes of plain values.
Doesn't know what any fact means.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgpack
from blake3 import blake3

from jupiterd.cluster.facts.fact_wire import to_wire
from jupiterd.cluster.facts.facts import Fact

Order = tuple[int, str, str, int]
"""Where an entry stands among all: term, node, ledger uuid, index."""

Rank = tuple[Any, ...]
"""What facts of one key are compared by, the order last; of one shape within one register."""

ONLY = ""
"""The key of a register that holds one thing."""

_SCALARS = frozenset({str, int, float, bytes, bool, type(None)})

_NEVER = object()

Key = TypeVar("Key")
RegisteredFact = TypeVar("RegisteredFact", bound=Fact)


def canonical_bytes(value: object) -> bytes:
    """Return msgpack with the keys of every map sorted, so that equal values have equal bytes."""
    return packed(_sorted(value))


def packed(value: object) -> bytes:
    """Return msgpack of a value; where no map is in it, equal values have equal bytes."""
    packed = msgpack.packb(value, use_bin_type=True)
    assert packed is not None  # noqa: S101 - only a packer that buffers returns nothing
    return packed


def _sorted(value: object) -> object:
    if type(value) in _SCALARS or isinstance(value, str):  # nearly all there is, quickly told
        return value
    if isinstance(value, list | tuple):
        return [item if type(item) in _SCALARS else _sorted(item) for item in value]
    if type(value) is dict or isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, Sequence) else value


def fact_hash(fact: Fact) -> str:
    """Return BLAKE3 of what a fact says, 64 hex digits; who wrote it and when plays no part.

    Nor do fields that came later, as long as they say nothing: others name a fact by this hash.
    """
    kind, version, said = to_wire(fact)
    later: Mapping[str, Any] = getattr(fact, "LATER", {})
    fields = {name: value for name, value in said.items() if later.get(name, _NEVER) != value}
    return blake3(canonical_bytes((kind, version, fields))).hexdigest()


class Register(Generic[Key, RegisteredFact]):
    """For each key the winner among all facts ever offered."""

    def __init__(self, *, greatest_wins: bool) -> None:
        """Settings keep the greatest rank, set facts the least (the first in the order)."""
        self._greatest_wins = greatest_wins
        self._facts: dict[Key, RegisteredFact] = {}
        self._ranks: dict[Key, Rank] = {}
        self._packed_winners: dict[Key, bytes] = {}
        """What `digest` says of each winner that it was asked of."""
        self._unpacked: set[Key] = set()
        """Whose winners `digest` wasn't asked of yet."""
        self._digest: bytes | None = None

    @property
    def facts(self) -> Mapping[Key, RegisteredFact]:
        """The winner of each key."""
        return self._facts

    def rank(self, key: Key) -> Rank | None:
        """Return the rank of the winner, or None where nothing was offered."""
        return self._ranks.get(key)

    def order(self, key: Key) -> Order:
        """Return the order of the entry that the winner of a key came with."""
        return _order_in(self._ranks[key])

    def offer(self, key: Key, fact: RegisteredFact, rank: Rank) -> bool:
        """Take the fact if it beats what is there; say whether it did."""
        if key in self._facts and not self._beats(fact, rank, key):
            return False
        self._facts[key] = fact
        self._ranks[key] = rank
        self._unpacked.add(key)
        self._digest = None
        return True

    def _beats(self, fact: RegisteredFact, rank: Rank, key: Key) -> bool:
        known_rank = self._ranks[key]
        if rank == known_rank:  # two facts of one entry: decided by what they say
            return canonical_bytes(to_wire(fact)) < canonical_bytes(to_wire(self._facts[key]))
        return (rank > known_rank) == self._greatest_wins

    def placed(self) -> Iterator[tuple[Order, RegisteredFact]]:
        """Return the winners with the order of their entries: a rank ends in it, whatever else."""
        for key, fact in self._facts.items():
            yield _order_in(self._ranks[key]), fact

    def digest(self) -> bytes:
        """Return BLAKE3 of everything that tells two registers apart, made anew after changes."""
        if self._digest is None:
            for key in self._unpacked:
                row = [key, self._ranks[key], to_wire(self._facts[key])]
                self._packed_winners[key] = canonical_bytes(row)
            self._unpacked.clear()
            self._digest = blake3(packed(sorted(self._packed_winners.values()))).digest()
        return self._digest


def _order_in(rank: Rank) -> Order:
    """Return what every rank ends in."""
    term, node, ledger, index = rank[-4:]
    return term, node, ledger, index
