"""What a cycle would hold out of documents that somebody has only looked at.

Owns putting together the plan, the sides and the count that a round's parting has too, so that a
look at all documents tells just what the cycle then does. Doesn't know how documents are read.
"""

from collections.abc import Sequence

from jupiterd.cycle.data.split import TRAIN
from jupiterd.cycle.holdout.holdout_choice import plan_holdout
from jupiterd.cycle.holdout.holdout_plan import Collected
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.holdout_sides import COPY, sides_of
from jupiterd.cycle.holdout.verdict_check import Found


def holdout_forecast(documents: Sequence[Collected], rules: HoldoutRules) -> Found:
    """Return what is held out of these clean documents in a first round.

    documents: in the order in which copies give way to each other
    """
    if not documents:
        return Found()
    plan, _ = plan_holdout(documents, rules)
    sides = zip(documents, sides_of(plan, documents), strict=True)
    held_out = [
        (side, plan.counted_as(each.path), each.size_bytes)
        for each, side in sides
        if side not in {TRAIN, COPY}
    ]
    size = sum(each.size_bytes for each in documents)
    return Found.of(held_out, len(documents), size, rules)
