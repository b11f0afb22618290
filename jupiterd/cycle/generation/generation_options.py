"""How a round's generating is cut into items that several nodes share.

Owns the cut: how many prompts an item has, and which documents are its own. Doesn't know nodes, or
what is made of a document.

All items of a round part its real documents among them, by their places in one order that the
round decides: so no document is used by two items, and none more than `mixing.MAX_VARIANTS` times.
Whoever has an item finds its documents by itself.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from blake3 import blake3

from jupiterd.cycle.generation.promotion import CANARY_SHARE
from jupiterd.protocol.frames import Scalar

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import CompleteFunctionTemplate, RewritingTemplate
    from jupiterd.cycle.domain.generator import Generator
    from jupiterd.cycle.generation.promotion import GeneratorShare

ITEM_PROMPTS: Final = 128
"""Of one item: so much is lost at most where a node dies that nobody gets back."""

MAX_ITEMS: Final = 64
"""Of one template: a quota beyond this many items makes them larger, since each loads a model."""


MAX_CANARY_ITEMS: Final = 8
"""Of them, those that a student on trial may have."""

WITHOUT: Final = "without"
"""In the summary of an item whose generator couldn't be had: why."""

GIVEN_UP: Final = "given_up"
"""In the summary of an item that wasn't asked to its end, since nothing of it could be used: so."""

TRIED: Final = 48
"""Answers of one item of which none can be used, before no more are asked."""


@dataclass(frozen=True)
class QuotaPart:
    """A part of a template's quota: one item."""

    template: "CompleteFunctionTemplate | RewritingTemplate"
    generator: "Generator"
    """Who writes it."""
    samples: int
    """Prompts, as far as there are documents."""
    stripes: int
    """How many items part the documents."""
    is_for_canary: bool
    """It is of the part of a quota that a student on trial has."""

    def params(self, number: int, order: str) -> dict[str, Any]:
        """Return what an item is told of its part.

        Args:
            number: of the item; it has the documents at every place that leaves it as the rest.
            order: what decides the documents' order, the same for all items of a round.
        """
        return {
            "template": self.template.model_dump(mode="json") | {"samples": self.samples},
            "order": order,
            "stripe": number,
            "stripes": self.stripes,
            "seed": seed_of(order, number),
        }


def pieces_of(
    templates: Sequence["CompleteFunctionTemplate | RewritingTemplate"],
    writers: Callable[[str], Sequence["GeneratorShare"]],
    canary_share: float = CANARY_SHARE,
) -> tuple[QuotaPart, ...]:
    """Return the items of a round, in the order of their numbers; parts of a quota are alike.

    Args:
        templates: with their quotas.
        writers: returns who writes a kind of template.
        canary_share: of each quota, for a student on trial; 0 where there is never one.
    """
    cut = [
        (template, quota, size)
        for template in templates
        for quota in _quotas(template.samples, writers(template.kind), canary_share)
        for size in _sizes(quota)
    ]
    return tuple(
        QuotaPart(template, quota.generator, size, len(cut), quota.is_for_canary)
        for template, quota, size in cut
    )


class _Quota(NamedTuple):
    generator: "Generator"
    samples: int
    is_for_canary: bool


def _quotas(samples: int, writers: Sequence["GeneratorShare"], canary_share: float) -> list[_Quota]:
    """Part a quota where a canary would begin, whether there is one or not.

    So the items before it are the same whoever is promoted, and can be done before that is known.
    """
    if not writers:
        return []
    canary = max(1, round(samples * canary_share)) if canary_share else 0
    if len(writers) == 1 and writers[0].share < 1:
        return [_Quota(writers[0].generator, canary, is_for_canary=True)]
    usual = _Quota(writers[0].generator, samples - canary, is_for_canary=False)
    last = _Quota(writers[-1].generator, canary, is_for_canary=True)
    return [quota for quota in (usual, last) if quota.samples > 0]


def _sizes(quota: _Quota) -> list[int]:
    most = MAX_CANARY_ITEMS if quota.is_for_canary else MAX_ITEMS - MAX_CANARY_ITEMS
    count = min(most, math.ceil(quota.samples / ITEM_PROMPTS))
    least, more = divmod(quota.samples, count)
    return [least + (number < more) for number in range(count)]


def seed_of(order: str, number: int) -> int:
    """Return the seed of an item, whoever does it and how often."""
    return int.from_bytes(blake3(f"{order}\0{number}".encode()).digest(4), "big")


def place_of(sample_id: str, order: str) -> bytes:
    """Return what a document is sorted by."""
    return blake3(f"{order}\0{sample_id}".encode()).digest(16)


def given_up_words(summaries: Sequence[Mapping[str, Scalar]]) -> list[str]:
    """Return what people are told of templates that the generator can't do; each once."""
    return list(dict.fromkeys(str(each[GIVEN_UP]) for each in summaries if GIVEN_UP in each))


def without_words(summaries: Sequence[Mapping[str, Scalar]]) -> list[str]:
    """Return what people are told of items whose generator couldn't be had."""
    reasons = [str(summary[WITHOUT]) for summary in summaries if WITHOUT in summary]
    if not reasons:
        return []
    return [f"without what {len(reasons)} of {len(summaries)} items would give: {reasons[0]}"]
