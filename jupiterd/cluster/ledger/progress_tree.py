"""The tree of a cycle's checkpoints and rounds, and the line through it that counts.

Owns how progress facts hang together and which leaf is canonical. Doesn't know cycles, work or
what is in an artifact.

    '' -> c1 -> c2 -> [round 1] -> c3 -> ...      the line
             -> d2                                a branch

1. A checkpoint hangs below the checkpoint it names; the first of a round below the commit of the
   round before.
2. A round commit hangs below the checkpoint of its round that it names.
3. Rounds have no gaps: what doesn't fit (yet) is kept, and waits outside the tree.
4. Of several commits of one round on one checkpoint, the next round hangs below the one with the
   greatest hash.
5. The canonical leaf is the one with the greatest (rounds, round of its checkpoint, tokens, hash):
   a round that goes on with the trunk has fewer tokens at first than the branch that was judged.
6. Where a leaf is pinned, only leaves that descend from it (or are it) compete; a pinned commit is
   the one of 4. As long as the pinned leaf has no place in the tree, nothing is pinned.
7. A leaf whose checkpoint is parked doesn't compete, and what it hangs below is a leaf in its
   place; a pinned one that is parked pins nothing meanwhile.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from jupiterd.cluster.facts.facts import CheckpointCommitted, RoundCommitted
from jupiterd.cluster.ledger.lww_registers import Order, Register, fact_hash

Progress = CheckpointCommitted | RoundCommitted

ROOT = ""
"""What the first checkpoint names as its parent."""


def progress_key(fact: Progress) -> str:
    """Return the name of a node of the tree: a checkpoint's artifact id, a round's hash."""
    return fact.artifact if isinstance(fact, CheckpointCommitted) else fact_hash(fact)


def weights_of(fact: Progress) -> str:
    """Return the artifact id of the weights at a node of the tree."""
    return fact.artifact if isinstance(fact, CheckpointCommitted) else fact.final_checkpoint


@dataclass(frozen=True)
class Leaf:
    """The end of a line."""

    fact: Progress
    rounds: int
    """Rounds committed from the root to here."""
    checkpoint: CheckpointCommitted
    """The line's last checkpoint."""
    order: Order
    """Where the entry that first told of it stands."""
    is_pinned: bool
    """It is the pinned leaf, or descends from it."""
    is_suspended: bool
    """It doesn't compete."""

    @property
    def key(self) -> str:
        """Its name in the tree."""
        return progress_key(self.fact)


@dataclass(frozen=True)
class _Place:
    """A fact that has its place in the tree."""

    fact: Progress
    above: "_Place | None"
    rounds: int
    """Rounds committed from the root to here."""
    checkpoint: CheckpointCommitted
    """The last checkpoint from the root to here."""
    is_pinned: bool
    """It is the pinned leaf, or descends from it."""

    def weight(self) -> tuple[bool, int, int, int, str]:
        last = self.checkpoint
        return self.is_pinned, self.rounds, last.round, last.tokens, progress_key(self.fact)

    def path(self) -> tuple[Progress, ...]:
        facts: list[Progress] = []
        place: _Place | None = self
        while place is not None:
            facts.append(place.fact)
            place = place.above
        return tuple(reversed(facts))


@dataclass(frozen=True)
class _Leaves:
    """The ends of all lines, the heaviest first."""

    competing: tuple[_Place, ...] = ()
    suspended: tuple[_Place, ...] = ()

    @cached_property
    def line(self) -> tuple[Progress, ...]:
        """What leads from the root to the heaviest that competes."""
        return self.competing[0].path() if self.competing else ()


class ProgressTree:
    """Grows by facts in any order, any number of times."""

    def __init__(self) -> None:
        self._checkpoints: Register[str, CheckpointCommitted] = Register(greatest_wins=False)
        self._rounds: Register[str, RoundCommitted] = Register(greatest_wins=False)
        self._leaves: _Leaves | None = _Leaves()
        self._pinned = ""
        self._suspended: frozenset[str] = frozenset()

    def apply(self, fact: Progress, order: Order) -> None:
        """Take in one fact."""
        key = progress_key(fact)
        if key == ROOT:
            return
        if isinstance(fact, RoundCommitted):
            changed = self._rounds.offer(key, fact, order)
        else:  # weights saved at the round's last step may be committed again as its final ones
            changed = self._checkpoints.offer(key, fact, (not fact.is_final, *order))
        if changed:
            self._leaves = None

    def pin(self, leaf: str) -> None:
        """Let only what descends from that leaf be canonical, once it is known; empty for any."""
        if leaf != self._pinned:
            self._pinned, self._leaves = leaf, None

    def park(self, missing: frozenset[str]) -> None:
        """Let no line compete that ends in one of these checkpoints, and all others."""
        if missing != self._suspended:
            self._suspended, self._leaves = missing, None

    def canonical_branch(self) -> tuple[Progress, ...]:
        """Return the canonical line from root to leaf; empty before the first checkpoint."""
        return self._ranked_leaves().line

    def other_leaves(self) -> tuple[Progress, ...]:
        """Return the other leaves, the heaviest first, and behind them those that are parked."""
        leaves = self._ranked_leaves()
        return tuple(place.fact for place in (*leaves.competing[1:], *leaves.suspended))

    def leaves(self) -> tuple[Leaf, ...]:
        """Return every leaf, the canonical one first and those that are parked last."""
        leaves = self._ranked_leaves()
        return (
            *(self._leaf(place, is_suspended=False) for place in leaves.competing),
            *(self._leaf(place, is_suspended=True) for place in leaves.suspended),
        )

    def leaf_without(self, missing: frozenset[str]) -> Leaf | None:
        """Return the leaf that would be canonical if these checkpoints were parked."""
        leaves = self._find_leaves(missing).competing
        return self._leaf(leaves[0], is_suspended=False) if leaves else None

    def checkpoints(self) -> Iterable[CheckpointCommitted]:
        """Return every checkpoint that is known, whether it has its place or not."""
        return self._checkpoints.facts.values()

    def _leaf(self, place: _Place, *, is_suspended: bool) -> Leaf:
        return Leaf(
            fact=place.fact,
            rounds=place.rounds,
            checkpoint=place.checkpoint,
            order=self._order_of(place.fact),
            is_pinned=place.is_pinned,
            is_suspended=is_suspended,
        )

    def _order_of(self, fact: Progress) -> Order:
        key = progress_key(fact)
        register = self._rounds if isinstance(fact, RoundCommitted) else self._checkpoints
        return register.order(key)

    def placed(self) -> Iterator[tuple[Order, Progress]]:
        """Return every fact with the order of its entry."""
        yield from self._checkpoints.placed()
        yield from self._rounds.placed()

    def digest(self) -> list[bytes]:
        """Return hashes of everything that tells two trees apart."""
        return [self._checkpoints.digest(), self._rounds.digest()]

    def _ranked_leaves(self) -> _Leaves:
        if self._leaves is None:
            self._leaves = self._find_leaves(self._suspended)
        return self._leaves

    def _find_leaves(self, suspended: frozenset[str]) -> _Leaves:
        places = self._places()
        competes = [False] * len(places)
        has_any, has_competing = list(competes), list(competes)
        for number in range(len(places) - 1, -1, -1):  # what hangs below a place comes behind it
            place, above = places[number]
            competes[number] = has_competing[number] or place.checkpoint.artifact not in suspended
            if above is not None:
                has_any[above] = True
                has_competing[above] = has_competing[above] or competes[number]
        found = [place for place, _ in places]
        return _Leaves(
            _ranked(p for n, p in enumerate(found) if competes[n] and not has_competing[n]),
            _ranked(p for n, p in enumerate(found) if not (competes[n] or has_any[n])),
        )

    def _places(self) -> list[tuple[_Place, int | None]]:
        """Return every place in the tree, and the number of the one that it hangs below."""
        facts = self._checkpoints.facts.values(), self._rounds.facts.values()
        below = _Children(*facts, self._pinned)
        places: list[tuple[_Place, int | None]] = [(place, None) for place in below.first()]
        for number, (place, _) in enumerate(places):  # it grows meanwhile
            places.extend((child, number) for child in below.of(place))
        return places


def _ranked(places: Iterable[_Place]) -> tuple[_Place, ...]:
    return tuple(sorted(places, key=_Place.weight, reverse=True))


class _Children:
    """Finds what hangs directly below a place."""

    def __init__(
        self,
        checkpoints: Iterable[CheckpointCommitted],
        rounds: Iterable[RoundCommitted],
        pinned: str,
    ) -> None:
        self._pinned = pinned
        self._checkpoints: defaultdict[tuple[str, int], list[CheckpointCommitted]] = defaultdict(
            list
        )
        self._rounds: defaultdict[tuple[str, int], list[RoundCommitted]] = defaultdict(list)
        for checkpoint in checkpoints:
            self._checkpoints[checkpoint.parent, checkpoint.round].append(checkpoint)
        for committed in rounds:
            self._rounds[committed.final_checkpoint, committed.round].append(committed)

    def first(self) -> list[_Place]:
        """Return what hangs below the root."""
        found = self._checkpoints.get((ROOT, 1), ())
        return [_Place(item, None, 0, item, self._is_pinned(item)) for item in found]

    def of(self, place: _Place) -> list[_Place]:
        """Return what hangs below a place."""
        artifact, current = place.checkpoint.artifact, place.rounds + 1
        children: list[_Place] = []
        if isinstance(place.fact, CheckpointCommitted):
            children += [
                _Place(item, place, current, place.checkpoint, self._is_pinned(item, place))
                for item in self._rounds.get((artifact, current), ())
            ]
        elif place.fact != self._carrier(artifact, place.rounds):
            return []
        found = self._checkpoints.get((artifact, current), ())
        return children + [
            _Place(item, place, place.rounds, item, self._is_pinned(item, place)) for item in found
        ]

    def _carrier(self, artifact: str, round_number: int) -> RoundCommitted:
        rivals = self._rounds[artifact, round_number]
        if len(rivals) == 1:
            return rivals[0]
        return max(rivals, key=lambda rival: (self._is_pinned(rival), fact_hash(rival)))

    def _is_pinned(self, fact: Progress, above: _Place | None = None) -> bool:
        is_below = above is not None and above.is_pinned
        return is_below or (self._pinned != "" and progress_key(fact) == self._pinned)
