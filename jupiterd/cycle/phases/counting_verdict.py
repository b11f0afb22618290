"""Which verdict on a candidate counts, and when the vault is opened for one.

Owns both. Doesn't know what is asked of a candidate (`gate`).
"""

from collections.abc import Container
from typing import TYPE_CHECKING, Final

from jupiterd.cycle.base.work_item import Phase, WorkResult
from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.phases.collect import has_vault
from jupiterd.cycle.phases.view import RoundView, item_id

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain

VAULT_EVERY = 5
"""The vault is shown for every fifth candidate that would be promoted."""


FIRST: Final = 0
"""The number of the item that judges the scores alone; these numbers must never change."""

LAST: Final = 1
"""Of the one that is told all: the vault, small students, and what a judge said."""

WITH_JUDGE: Final = 2
"""Of the one that is told what a judge said, between the two."""


def verdict_item(round_number: int, candidate: str, completed: Container[str] = frozenset()) -> str:
    """Return the id of the item whose verdict counts: that which is told most, of those done."""
    found = (item_id(round_number, Phase.GATE, n, candidate) for n in (LAST, WITH_JUDGE))
    first = item_id(round_number, Phase.GATE, FIRST, candidate)
    return next((each for each in found if each in completed), first)


def verdict_before_last(view: RoundView) -> WorkResult | None:
    """Return what the gate says of this candidate before it is told of vault and students."""
    names = (item_id(view.round, Phase.GATE, n, view.candidate or "") for n in (WITH_JUDGE, FIRST))
    return next((view.completed[name] for name in names if name in view.completed), None)


def is_shown_the_vault(view: RoundView, domain: "Domain") -> bool:
    """Say whether what this candidate saves is looked at in the vault, too.

    That is so for every fifth candidate that would be promoted: seldom enough to keep the vault
    secret, and often enough to notice that the gate's text was over-fitted.
    """
    if not _was_won(view, view.round, view.candidate or "") or not has_vault(view, domain):
        return False
    before = sum(_was_won(view, number) for number in range(1, view.round))
    return (before + 1) % VAULT_EVERY == 0


def _was_won(view: RoundView, round_number: int, candidate: str = "") -> bool:
    """Say whether a round's candidate, or any where none is named, passed the gate."""
    begins = [item_id(round_number, Phase.GATE, n, candidate) for n in (FIRST, WITH_JUDGE)]
    return any(
        result.summary.get("verdict") == Decision.PROMOTE
        for name, result in view.completed.items()
        if name in begins or (not candidate and name.startswith(tuple(f"{b}/" for b in begins)))
    )
