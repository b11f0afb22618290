"""The items that generate a round's synthetic text, and what they wrote.

Owns what each piece of a template is told. Doesn't know how a model is asked (workers).
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jupiterd.cycle.generating import Piece, pieces_of
from jupiterd.cycle.generator import Generator
from jupiterd.cycle.phases.collect import training_text
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.promotion import writers_of
from jupiterd.cycle.work import Phase, WorkItem
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain import Domain
    from jupiterd.cycle.plan import ModelShape


def generate(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return an item for each piece of each template; none where nobody writes."""
    generation = domain.generation
    pieces = pieces_of(
        generation.templates, lambda kind: writers_of(kind, view.standing, view.of_others)
    )
    return tuple(
        writing(
            view,
            domain,
            WorkItem(item_id(view.round, Phase.GENERATE, number), Phase.GENERATE, "generate"),
            number,
            piece,
        )
        for number, piece in enumerate(pieces)
    )


def writing(
    view: RoundView, domain: "Domain", item: WorkItem, number: int, piece: Piece
) -> WorkItem:
    """Return an item with all that is told to whoever writes a piece, the n-th of its kind."""
    generation = domain.generation
    params = {
        "engine": generation.engine,
        "language": domain.language,
        "fetched_at": view.started_at,
        "purged": sorted(view.purged),
        "temperature": generation.temperature,
        "top_p": generation.top_p,
        **_asked(piece.generator),
        **piece.params(number, f"{view.seed}/{view.round}"),
        "max_tokens": generation.max_tokens_of(piece.template),
    }
    inputs = {**_model(piece.generator), **training_text(view, domain)}
    return replace(item, params=params, inputs=inputs)


def _asked(generator: Generator) -> dict[str, Any]:
    server = {"server": generator.to_plain()} if generator.url else {}
    return {"generator": generator.id, **server}


def _model(generator: Generator) -> dict[str, ArtifactId]:
    return {"model": ArtifactId(generator.artifact)} if generator.artifact else {}


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
