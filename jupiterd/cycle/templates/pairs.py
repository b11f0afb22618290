"""A document with what was made of it, in one training text: so a base model learns the task.

Owns how much of the training text has that form, and the form itself, which is the one in which a
base model is asked. A model that has never seen it can't rewrite anything, whatever it knows.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.templates.asking import ask, closed, defused
from jupiterd.cycle.templates.passages import passages
from jupiterd.cycle.templates.texts import TEMPLATES
from jupiterd.protocol.frames import Scalar

PAIR_SHARE: Final = 0.15
"""Of the bytes of a round's training text, at most."""

PASSAGE, MAX_CHARS = "passage", "passage_chars"
"""What a sample says of the passage it was made of: its number, and how long passages were cut."""


def origin(number: int, max_chars: int) -> dict[str, Scalar]:
    """Return what a sample records of its passage."""
    return {PASSAGE: number, MAX_CHARS: max_chars}


def pair(sample: Sample, parent: Sample) -> str | None:
    """Return the passage and the text made of it; None where the passage isn't known."""
    template = TEMPLATES.get(sample.template)
    number, max_chars = sample.sampler.get(PASSAGE), sample.sampler.get(MAX_CHARS)
    if template is None or not (isinstance(number, int) and isinstance(max_chars, int)):
        return None
    found = passages(defused(parent.text, ()), max_chars)
    if not 0 <= number < len(found):
        return None
    return f"{ask(template, found[number]).opening}{sample.text}\n{closed(template.kind)}"


def pairs_among(samples: Iterable[Sample], total_bytes: int) -> Mapping[str, str]:
    """Return the texts of those samples that become pairs: id -> text.

    Args:
        samples: all that is trained on, in an order that decides who comes first.
        total_bytes: their size.
    """
    known = list(samples)
    real = {sample.id: sample for sample in known if sample.kind == "real"}
    found: dict[str, str] = {}
    budget_bytes = int(PAIR_SHARE * total_bytes)
    for sample in known:
        parent = real.get(sample.parents[0]) if sample.kind == "synthetic" else None
        text = None if parent is None else pair(sample, parent)
        if text is None:
            continue
        budget_bytes -= len(text.encode())
        if budget_bytes < 0:
            break
        found[sample.id] = text
    return found
