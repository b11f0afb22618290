"""Alarms that people have seen: what they dismissed, and when that counts no more.

Owns the fold of the facts, and when what was dismissed is over. Pure: it is handed the time.
Doesn't know what an alarm is about, or who shows it.

What happened (a verdict, a knock) has a cause of its own each time, so what happens next is told
again. What lasts (a full disk) has none: it is told again once it was over.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.ledger.lww_registers import Order, Rank, Register

GRACE_S: Final = 30.0
"""What goes and is back within that was never over."""

SETTLE_S: Final = 150.0
"""Who has just been started doesn't know yet what holds: the slowest alarm takes a minute."""


class Dismissals:
    """Grows by facts in any order, any number of times."""

    def __init__(
        self, may_decide: Callable[[Order], bool], is_member: Callable[[str], bool]
    ) -> None:
        """Take what says whether the author of the entry at an order was trusted by then.

        is_member: says whether a node was admitted, and not removed since
        """
        self._may_decide, self._is_member = may_decide, is_member
        self._facts: Register[tuple[str, str, bool], AlarmDismissed] = Register(greatest_wins=True)

    def apply(self, fact: AlarmDismissed, order: Order) -> None:
        """Take in one fact of the entry that stands at `order`."""
        self._facts.offer((fact.key, order[1], fact.is_over), fact, (fact.edit, *order))

    @property
    def in_force(self) -> Mapping[str, AlarmDismissed]:
        """What counts as seen, by its key."""
        return {key: fact for key, fact in self._last().items() if not fact.is_over}

    def edit(self, key: str) -> int:
        """Return the edit number of an alarm's setting; the next one carries one more."""
        last = self._last().get(key)
        return 0 if last is None else last.edit

    def _last(self) -> dict[str, AlarmDismissed]:
        """Return the last word on each: members may let it ring again, who silences is trusted."""
        found: dict[str, tuple[Rank, AlarmDismissed]] = {}
        for place, fact in self._facts.facts.items():
            rank, order = self._facts.rank(place) or (), self._facts.order(place)
            if not (self._may_decide(order) or (fact.is_over and self._is_member(order[1]))):
                continue
            if fact.key not in found or rank > found[fact.key][0]:
                found[fact.key] = rank, fact
        return {key: fact for key, (_, fact) in found.items()}

    def placed(self) -> Iterator[tuple[Order, AlarmDismissed]]:
        """Return every author's last word with the order of its entry."""
        return self._facts.placed()

    def digest(self) -> Any:  # noqa: ANN401 - as registers have it
        """Return what tells two apart."""
        return self._facts.digest()


class DismissalWatch:
    """Which alarms that were dismissed are over, looked at again and again."""

    def __init__(self) -> None:
        self._due_s: dict[str, float] = {}
        """Key -> when it is over, unless it holds meanwhile."""

    def look(
        self, now_s: float, dismissed: AbstractSet[str], holding: AbstractSet[str]
    ) -> list[str]:
        """Take in the keys of what was dismissed and of all that holds; return what is over."""
        self._due_s = {key: self._due_s.get(key, now_s + SETTLE_S) for key in dismissed}
        for key in dismissed & holding:
            self._due_s[key] = now_s + GRACE_S
        return sorted(key for key, due_s in self._due_s.items() if now_s >= due_s)
