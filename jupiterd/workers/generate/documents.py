"""The real documents that one item of generating may use, and what is asked of each.

Owns their choice: the same for the same item, and none that another item of the round has. Doesn't
know templates.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.mixing import MAX_VARIANTS
from jupiterd.cycle.generation.generation_options import place_of
from jupiterd.workers.generate.grounded_prompt import Fits, GroundedPrompt, PromptMaker

SPARE = 3
"""So many times as many documents are read as are wanted: not each has what a template needs."""


@dataclass(frozen=True)
class Stripe:
    """Which documents are an item's own."""

    order: str
    number: int
    count: int

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> "Stripe":
        """Return the stripe that an item is told; an older leader's item has all documents."""
        seed = str(params["seed"])
        return cls(
            str(params.get("order", seed)),
            int(params.get("stripe", 0)),
            int(params.get("stripes", 1)),
        )


@dataclass(frozen=True)
class Numbered:
    """One ask, and how many of the same document came before it."""

    ask: GroundedPrompt
    variant: int


def own_documents(
    read: Callable[[], Iterable[Sample]], stripe: Stripe, wanted: int
) -> list[Sample]:
    """Return the stripe's real documents in its order, SPARE times as many as wanted at most.

    `read` yields all documents, each time anew: they are read twice, and never held together.
    """
    places = sorted({(place_of(s.id, stripe.order), s.id) for s in read() if s.kind == "real"})
    chosen = {
        sample_id: number
        for number, (_, sample_id) in enumerate(
            places[stripe.number :: stripe.count][: SPARE * wanted]
        )
    }
    found = {chosen[s.id]: s for s in read() if s.id in chosen and s.kind == "real"}
    return [found[number] for number in sorted(found)]


def choose_prompts(
    documents: Sequence[Sample],
    asker: PromptMaker,
    fits: Fits,
    *,
    wanted: int,
    seed: int,
    may_repeat: bool,
) -> list[Numbered]:
    """Return as many asks as wanted, if the documents give them, one of each before a second.

    may_repeat: asking the same again gives another answer
    """
    chance = random.Random(seed)  # noqa: S311 - a draw that anybody can repeat
    found: list[Numbered] = []
    for numbered in _in_turns(documents, asker, fits, chance, may_repeat=may_repeat):
        found.append(numbered)
        if len(found) == wanted:
            break
    return found


def _in_turns(
    documents: Sequence[Sample],
    asker: PromptMaker,
    fits: Fits,
    chance: random.Random,
    *,
    may_repeat: bool,
) -> Iterator[Numbered]:
    left: list[Sequence[GroundedPrompt]] = []
    for document in documents:
        asks = asker.asks(document, fits, chance.shuffle)
        if asks:
            yield Numbered(asks[0], 0)
            left.append(asks)
    for variant in range(1, MAX_VARIANTS):
        for asks in left:
            if variant < len(asks) or may_repeat:
                yield Numbered(asks[variant % len(asks)], variant)
