"""Which verdict on a candidate counts, and when the vault is opened for one.

Owns both. Doesn't know what is asked of a candidate (`gate`).
"""

from collections.abc import Container
from typing import TYPE_CHECKING

from jupiterd.cycle.gate.decision import Decision
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.work import Phase

if TYPE_CHECKING:
    from jupiterd.cycle.domain import Domain

VAULT_EVERY = 5
"""The vault is shown for every fifth candidate that would be promoted."""


def verdict_item(round_number: int, candidate: str, completed: Container[str] = frozenset()) -> str:
    """Return the id of the item whose verdict counts: the second, where the vault was shown."""
    with_vault = item_id(round_number, Phase.GATE, 1, candidate)
    return (
        with_vault if with_vault in completed else item_id(round_number, Phase.GATE, 0, candidate)
    )


def is_shown_the_vault(view: RoundView, domain: "Domain") -> bool:
    """Say whether what this candidate saves is looked at in the vault, too.

    That is so for every fifth candidate that would be promoted: seldom enough to keep the vault
    secret, and often enough to notice that the gate's text was over-fitted.
    """
    if not domain.holdout.vault or not _was_won(view, view.round, view.trained or ""):
        return False
    before = sum(_was_won(view, number) for number in range(1, view.round))
    return (before + 1) % VAULT_EVERY == 0


def _was_won(view: RoundView, round_number: int, candidate: str = "") -> bool:
    """Say whether a round's candidate, or any where none is named, passed the gate."""
    begin = item_id(round_number, Phase.GATE, 0, candidate)
    return any(
        result.summary.get("verdict") == Decision.PROMOTE
        for name, result in view.completed.items()
        if name == begin or (not candidate and name.startswith(f"{begin}/"))
    )
