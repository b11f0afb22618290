"""What becomes of each collected document, once it is planned what is held out.

Owns that rule, which a round's parting and every forecast of it share. Doesn't know files, or how
it was found out which documents are copies of each other.

Of a group of near-duplicates nothing is held out where one of them is trained on; else one of them
is, and the others are dropped.
"""

from collections.abc import Collection, Sequence
from typing import Final

from jupiterd.cycle.data.split import TRAIN
from jupiterd.cycle.holdout.holdout_plan import Collected, HoldoutPlan

COPY: Final = "copy"
"""Of a document that is held out: it is dropped."""
HELD_OUT_BEFORE: Final = "held-before"
"""It is, or is nearly, what a round before has held out: it is dropped here."""
LATE: Final = "late"
"""It would be held out, and came too late for that: it is dropped."""


def sides_of(
    plan: HoldoutPlan,
    documents: Sequence[Collected],
    held_out_before: Collection[int] = (),
    late: Collection[int] = (),
) -> list[str]:
    """Return of each document in order what it is for: TRAIN, a part of the holdout, or why not.

    Args:
        plan: of what is held out.
        documents: in the order in which copies give way to each other.
        held_out_before: groups of what was held out before.
        late: numbers of documents of which none is held out any more.
    """
    parts = [plan.part_of(each.path) for each in documents]
    trained = {each.group for each, part in zip(documents, parts, strict=True) if part == TRAIN}
    taken: set[int] = set()
    sides: list[str] = []
    for number, (each, part) in enumerate(zip(documents, parts, strict=True)):
        if each.group in held_out_before:
            side = HELD_OUT_BEFORE
        elif each.group in trained:
            side = TRAIN
        elif number in late:
            side = LATE
        elif each.group in taken:
            side = COPY
        else:
            taken.add(each.group)
            side = part
        sides.append(side)
    return sides
