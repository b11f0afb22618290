"""How a cycle, or a run, ends and goes on: its failure, its revival, the rounds added to it.

Owns the fold of these facts. Doesn't know rounds that are over, or who let it go on.

Which came first is told by the order of their entries: a failure behind the last revival counts.
"""

from collections.abc import Iterator
from typing import Any

from jupiterd.cluster.facts.facts import CycleFailed
from jupiterd.cluster.facts.lifecycle_facts import (
    CycleExtended,
    CycleRevived,
    FailureDismissed,
    LifecycleFact,
)
from jupiterd.cluster.ledger.lww_registers import ONLY, Order, Rank, Register

EndingFact = CycleFailed | LifecycleFact
"""What says how one ends, or goes on."""


class Lifecycle:
    """Of one cycle, as far as its facts are known; they may come in any order."""

    def __init__(self) -> None:
        self._failed: Register[str, CycleFailed] = Register(greatest_wins=True)
        self._revived: Register[str, CycleRevived] = Register(greatest_wins=True)
        self._dismissed: Register[str, FailureDismissed] = Register(greatest_wins=True)
        self._extended: Register[str, CycleExtended] = Register(greatest_wins=True)

    def apply(self, fact: EndingFact, order: Order) -> None:
        """Take in one fact."""
        match fact:
            case CycleFailed():
                self._failed.offer(ONLY, fact, order)
            case CycleRevived():
                self._revived.offer(ONLY, fact, order)
            case FailureDismissed():
                self._dismissed.offer(ONLY, fact, order)
            case CycleExtended():
                self._extended.offer(ONLY, fact, (fact.edit, *order))

    @property
    def failed(self) -> CycleFailed | None:
        """Why it can't go on by itself, or None."""
        is_revived = (self._revived.rank(ONLY) or ()) > self._failed_at
        return None if is_revived else self._failed.facts.get(ONLY)

    @property
    def revived_at(self) -> str:
        """Where the entry stands by which people went on with it last; empty where none did."""
        at = self._revived.rank(ONLY)
        return "" if at is None else f"{at[0]}.{at[-1]}"

    @property
    def is_dismissed(self) -> bool:
        """Say whether people have seen why it failed."""
        return (self._dismissed.rank(ONLY) or ()) >= self._failed_at

    @property
    def rounds(self) -> int:
        """How many rounds it has in all since it was extended; 0 where it never was."""
        extended = self._extended.facts.get(ONLY)
        return 0 if extended is None else extended.rounds

    @property
    def rounds_edit(self) -> int:
        """The edit number of that; the next one carries one more."""
        extended = self._extended.facts.get(ONLY)
        return 0 if extended is None else extended.edit

    @property
    def _failed_at(self) -> Rank:
        return self._failed.rank(ONLY) or ()

    def placed(self) -> Iterator[tuple[Order, EndingFact]]:
        """Return the facts in force with the order of their entries."""
        for register in self._registers():
            yield from register.placed()

    def digest(self) -> list[Any]:
        """Return hashes of everything that tells two of these apart."""
        return [register.digest() for register in self._registers()]

    def _registers(self) -> tuple[Register[Any, Any], ...]:
        return self._failed, self._revived, self._dismissed, self._extended
