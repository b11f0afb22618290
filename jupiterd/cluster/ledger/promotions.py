"""What people decided about the students of a cycle: who generates, whatever the gate said.

Owns which decision is in force. Doesn't know who is trusted: it is told. Of each author the last
word is kept, so that the word of one that isn't trusted hides no other.
"""

from collections.abc import Callable, Iterator
from typing import Any

from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.lww_registers import Order, Rank, Register


class Promotions:
    """Grows by facts in any order, any number of times."""

    def __init__(self, may_decide: Callable[[Order], bool]) -> None:
        """Take what says whether the author of the entry at an order was trusted by then."""
        self._may_decide = may_decide
        self._steered: Register[tuple[int, str, str], StudentSteered] = Register(greatest_wins=True)

    def apply(self, fact: StudentSteered, order: Order) -> None:
        """Take in one decision of the entry that stands at `order`."""
        key = fact.after_round, fact.student, order[1]
        self._steered.offer(key, fact, (fact.edit, *order))

    def after(self, round_number: int) -> tuple[StudentSteered, ...]:
        """Return what is in force about generators after a round, students in their order."""
        found: dict[str, tuple[Rank, StudentSteered]] = {}
        for key, fact in self._steered.facts.items():
            rank = self._steered.rank(key) or ()
            is_later = fact.student not in found or rank > found[fact.student][0]
            counts = fact.after_round == round_number and self._may_decide(self._steered.order(key))
            if counts and is_later:
                found[fact.student] = rank, fact
        return tuple(found[student][1] for student in sorted(found))

    def placed(self) -> Iterator[tuple[Order, StudentSteered]]:
        """Return every author's last word with the order of its entry."""
        return self._steered.placed()

    def digest(self) -> Any:  # noqa: ANN401 - as registers have it
        """Return what tells two apart."""
        return self._steered.digest()
