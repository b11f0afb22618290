"""The items that filter a round's text: each batch is cleaned by itself, then all are united.

Owns what goes into each, and which uniting counts. Doesn't know the filters.
"""

from typing import TYPE_CHECKING, Any

from jupiterd.cycle.phases.collect import held_out, training_text
from jupiterd.cycle.phases.generate import synthetic
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.cycle.uniting import knew_of, united, uniting_id
from jupiterd.cycle.work import Phase, WorkItem

if TYPE_CHECKING:
    from jupiterd.cycle.domain import Domain
    from jupiterd.cycle.plan import ModelShape


def filter_(view: RoundView, domain: "Domain", _shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return what cleans each batch by itself, and then also what unites them, which is item 0."""
    cleaning = _clean(view, domain)
    if any(item.id not in view.completed for item in cleaning):
        return cleaning
    return (*cleaning, _unite(view, domain, cleaning))


def _clean(view: RoundView, domain: "Domain") -> tuple[WorkItem, ...]:
    params = {
        "language": domain.language,
        "license_policy": domain.license_policy.model_dump(mode="json"),
        "rules_off": sorted(domain.filters.off),
    }
    real = training_text(view, domain).items()
    batches = {1 + int(name.partition(".")[2]): {"samples": each} for name, each in real}
    # Numbers are the same whichever sources couldn't be had.
    batches |= dict(enumerate(synthetic(view), 1 + len(domain.data_sources)))
    return tuple(
        WorkItem(item_id(view.round, Phase.FILTER, number), Phase.FILTER, "clean", params, batch)
        for number, batch in batches.items()
    )


def _unite(view: RoundView, domain: "Domain", cleaning: tuple[WorkItem, ...]) -> WorkItem:
    inputs = held_out(view, domain)
    for number, item in enumerate(cleaning):
        outputs = view.completed[item.id].outputs
        inputs |= {f"{name}.{number}": outputs[name] for name in ("clean", "dropped")}
    params: dict[str, Any] = {"language": domain.language, "purged": sorted(view.purged)}
    if domain.filters.quality is not None:
        params["quality"] = domain.filters.quality.model_dump(mode="json")
    return WorkItem(uniting(view), Phase.FILTER, "unite", params, inputs)


def uniting(view: RoundView) -> str:
    """Return the id of the uniting that counts; a purge asks for another, until it is packed."""
    done = {name: result.counts for name, result in view.completed.items()}
    last = united(view.round, done)
    is_packed = item_id(view.round, Phase.PACK, 0) in done
    if last and (is_packed or knew_of(done[last], view.purged)):
        return last
    return uniting_id(view.round, view.purged)
