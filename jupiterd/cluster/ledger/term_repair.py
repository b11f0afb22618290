"""What is left of a ledger in which somebody has written terms that no cluster comes to.

Owns that choice. Doesn't know disks, or who signs what is left. A cluster that such a term has hit
elects nobody any more: every node believes it to be the highest, and there is no room above it.

Each node comes to the same, by itself: the terms that small steps lead to are those that elections
have made. What was written in others, by the liar and by those who believed it, is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jupiterd.cluster.ledger.chain import Tip
from jupiterd.cluster.ledger.entry import Entry
from jupiterd.cluster.ledger.snapshot import LedgerSnapshot, Placed
from jupiterd.cluster.values.bounds import climbed


@dataclass(frozen=True)
class RepairedTerms:
    """What may stay."""

    term: int
    """The highest one that elections have made."""
    entries: Sequence[Entry]
    roster: Sequence[Entry]
    left_out: Sequence[Entry]
    """Of the entries; their terms lie far above."""
    tips: Mapping[str, Tip]
    """Of what a snapshot sums up; empty where there is none."""
    facts: Sequence[Placed]
    lost_facts: int
    """How many of the snapshot's facts are left out."""


def heal(
    entries: Sequence[Entry],
    roster: Sequence[Entry],
    snapshot: LedgerSnapshot | None,
    wanted: int | None = None,
) -> RepairedTerms:
    """Return what may stay; `wanted` is the highest term where people know it better."""
    placed = () if snapshot is None else snapshot.facts
    terms = {entry.term for entry in (*entries, *roster)}
    terms |= set() if snapshot is None else snapshot.terms
    term = climbed(terms) if wanted is None else wanted
    facts = [each for each in placed if each[0][0] <= term]
    return RepairedTerms(
        term=term,
        entries=[entry for entry in entries if entry.term <= term],
        roster=[entry for entry in roster if entry.term <= term],
        left_out=[entry for entry in entries if entry.term > term],
        tips=_lowered({} if snapshot is None else snapshot.tips, term),
        facts=facts,
        lost_facts=len(placed) - len(facts),
    )


def _lowered(tips: Mapping[str, Tip], term: int) -> dict[str, Tip]:
    """A chain stays as long as it was: its hashes hold, and its writers have ended."""
    return {writer: replace(tip, term=min(tip.term, term)) for writer, tip in tips.items()}
