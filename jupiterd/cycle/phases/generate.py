"""The items that generate a round's synthetic text, and what they wrote.

Owns what each piece of a template is told. Doesn't know how a model is asked (workers).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.generation_options import QuotaPart, pieces_of
from jupiterd.cycle.generation.promotion import writers_of
from jupiterd.cycle.phases.collect import training_text
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape


MAX_AHEAD: Final = 16
"""So many items of the next round are written before it begins, at most."""


def generate(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return an item for each piece of each template; none where nobody writes."""
    return _items(view, domain, view.round, _pieces(view, domain))


def _pieces(view: RoundView, domain: "Domain") -> tuple[QuotaPart, ...]:
    return pieces_of(
        domain.generation.templates,
        lambda kind: writers_of(kind, view.active_generators, view.named_generator),
    )


def _items(
    view: RoundView, domain: "Domain", round_number: int, pieces: Sequence[QuotaPart]
) -> tuple[WorkItem, ...]:
    return tuple(
        writing(
            view,
            domain,
            WorkItem(item_id(round_number, Phase.GENERATE, number), Phase.GENERATE, "generate"),
            number,
            piece,
            round_number,
        )
        for number, piece in enumerate(pieces)
    )


def writing(
    view: RoundView,
    domain: "Domain",
    item: WorkItem,
    number: int,
    piece: QuotaPart,
    round_number: int = 0,
) -> WorkItem:
    """Return an item with all that is told to whoever writes a piece, the n-th of its kind.

    round_number: the round that it is written for, unless that is the view's
    """
    generation = domain.generation
    params = {
        "engine": generation.engine,
        "language": domain.language,
        "fetched_at": view.started_at,
        "purged": sorted(view.purged),
        "temperature": generation.temperature_of(piece.template),
        "top_p": generation.top_p,
        **_generator_params(piece.generator),
        **piece.params(number, _order(view, round_number or view.round)),
        "max_tokens": generation.max_tokens_of(piece.template),
        **({"pairs": True} if view.loss_on else {}),
    }
    inputs = {**_model(piece.generator), **training_text(view, domain)}
    return replace(item, params=params, inputs=inputs)


def _order(view: RoundView, round_number: int) -> str:
    """Return what decides which documents a round's items have, and what is drawn for each.

    What is written again is another text: the same request would bring the same answer.
    """
    order, attempt = f"{view.seed}/{round_number}", view.generation_redos.get(round_number, 0)
    return f"{order}/{attempt}" if attempt else order


def _generator_params(generator: Generator) -> dict[str, Any]:
    server = {"server": generator.to_plain()} if generator.url else {}
    return {"generator": generator.id, **server}


def _model(generator: Generator) -> dict[str, ArtifactId]:
    return {"model": ArtifactId(generator.artifact)} if generator.artifact else {}


def ahead(view: RoundView, domain: "Domain") -> tuple[WorkItem, ...]:
    """Return what can be written for the next round before the gate has decided on this one.

    That is what its usual writers write whoever is promoted, from this round's text; nothing where
    a student is on trial, which may be the usual writer of the next round.
    """
    if view.active_generators.canary or view.round >= view.rounds:
        return ()
    pieces = _pieces(view, domain)
    items = _items(view, domain, view.round + 1, pieces)
    may = [item for item, piece in zip(items, pieces, strict=True) if not piece.is_for_canary]
    return tuple(item for item in may[:MAX_AHEAD] if item.id not in view.completed)


def synthetic(view: RoundView) -> list[dict[str, ArtifactId]]:
    """Return what each round so far has generated: it accumulates, and is filtered anew."""
    found = [_generated_in(view, number) for number in range(1, view.round + 1)]
    return [
        {f"samples.{number}" if number else "samples": each for number, each in enumerate(batches)}
        for batches in found
        if batches
    ]


def _generated_in(view: RoundView, round_number: int) -> list[ArtifactId]:
    """Return the batches of a round in the order of their items, but those that failed."""
    first = item_id(round_number, Phase.GENERATE, 0).removesuffix("0")
    numbers = sorted(
        int(name.removeprefix(first)) for name in view.completed if name.startswith(first)
    )
    outputs = (view.completed[f"{first}{number}"].outputs for number in numbers)
    return [each["samples"] for each in outputs if "samples" in each]
