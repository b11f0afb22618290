"""The items that filter a round's text: each batch that was generated is cleaned, then all united.

Owns what goes into each, and which uniting counts. Doesn't know the filters.
"""

from typing import TYPE_CHECKING, Any

from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.data.batch_merge import knew_of, united, uniting_id
from jupiterd.cycle.phases.collect import (
    cleaning,
    held_out,
    training_text,
)
from jupiterd.cycle.phases.generate import synthetic
from jupiterd.cycle.phases.source_reading import is_split_while_read
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.questions.question_file import QUESTIONS
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape


def filter_(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what cleans each batch by itself, and then also what unites them, which is item 0."""
    cleaned = _clean(view, domain)
    if any(item.id not in view.completed for item in cleaned):
        return cleaned
    return (*cleaned, _unite(view, domain, cleaned))


def _clean(view: RoundView, domain: "Domain") -> tuple[WorkItem, ...]:
    """Return what cleans generated text; real text is clean, but for that of older cycles."""
    # Numbers are the same whichever sources couldn't be had.
    batches = dict(enumerate(synthetic(view), 1 + len(domain.data_sources)))
    if is_split_while_read(view):
        real = training_text(view, domain).items()
        batches |= {1 + int(name.partition(".")[2]): {"samples": each} for name, each in real}
    return tuple(
        cleaning(domain, item_id(view.round, Phase.FILTER, number), Phase.FILTER, batch)
        for number, batch in sorted(batches.items())
    )


def _unite(view: RoundView, domain: "Domain", cleaned: tuple[WorkItem, ...]) -> WorkItem:
    inputs = held_out(view, domain)
    for number, item in enumerate(cleaned):
        outputs = view.completed[item.id].outputs
        inputs |= {f"{name}.{number}": outputs[name] for name in ("clean", "dropped")}
    if not is_split_while_read(view):
        inputs[f"clean.{len(cleaned)}"] = training_text(view, domain)["train.0"]
    params: dict[str, Any] = {"language": domain.language, "purged": sorted(view.purged)}
    if domain.filters.quality is not None:
        params["quality"] = domain.filters.quality.model_dump(mode="json")
    if view.questions:
        inputs[QUESTIONS] = ArtifactId(view.questions)
    return WorkItem(uniting(view), Phase.FILTER, "unite", params, inputs)


def uniting(view: RoundView) -> str:
    """Return the id of the uniting that counts; a purge asks for another, until it is packed."""
    done = {name: result.counts for name, result in view.completed.items()}
    last = united(view.round, done)
    is_packed = item_id(view.round, Phase.PACK, 0) in done
    if last and (is_packed or knew_of(done[last], view.purged)):
        return last
    return uniting_id(view.round, view.purged)
