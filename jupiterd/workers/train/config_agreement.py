"""The ranks of a gang make sure that they mean the same, before any of them trains.

Owns the exchange. Doesn't know who is right (`cycle.training.config_agreement`), or what is agreed
on.
"""

from collections.abc import Sequence

from jupiterd.cycle.training.config_agreement import (
    Agreement,
    as_numbers,
    disagreement,
    short_form,
    text_length,
    text_of,
)
from jupiterd.errors import RanksDisagreeError
from jupiterd.workers.training_engine import TrainingEngine


def agree(engine: TrainingEngine, agreement: Agreement, names: Sequence[str]) -> None:
    """Compare with all other ranks; every one of them comes to the same result.

    names: of each rank's node

    Raises:
        RanksDisagreeError: a rank means something else; its node is named, and what differs.
    """
    text = text_of(agreement)
    length = text_length(engine.gather(short_form(text)))
    if not length:
        return
    found = disagreement(engine.gather(as_numbers(text, length)), names)
    raise RanksDisagreeError(
        f"the ranks don't mean the same: {found or 'who, is too long to tell'}"
    )
