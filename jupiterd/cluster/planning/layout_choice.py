"""Which layout a run had best, why, and what stands beside it.

Owns that choice and its words. Pure. Doesn't know how layouts are predicted (`layouts`), or what
machines are called: it is handed their names.

The most useful of those that can be run is chosen, without machines that are too slow; islands only
where they win over one gang by more than a prediction is usually off (`prediction_error`). Where
nobody has measured a machine that would take part, neither in what runs unasked nor in islands, the
former is chosen: so it gets measured. But islands are, where they may be, if machines are made for
different engines, of which one was never measured, or if wires would make one gang slow whatever
its machines can do.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from jupiterd.cluster.planning.layouts import (
    ONE_GANG,
    Fleet,
    Island,
    Layout,
    LayoutKind,
    PlannedTraining,
    Prediction,
    islands_by_link,
    possible_layouts,
    predict,
    slow,
)
from jupiterd.cluster.planning.prediction_error import TOLERANCE
from jupiterd.formats import duration
from jupiterd.ids import NodeId

SHOWN = 8
"""Layouts that people are told of beside the chosen one."""

NAMED = 4
"""Machines of an island that are named; the others are counted."""

LONG_SUM_S = 1.0
"""Of a step's gradients: no machine whose steps take so long would rather wait as long again."""

OWN_ENGINES = "each trains on what it is made for, and that was never measured"

Names = Mapping[NodeId, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class LayoutPlan:
    """What a run had best."""

    chosen: Prediction
    unasked: Prediction
    """What runs where nobody asks for anything else."""
    others: tuple[Prediction, ...]
    """Beside the chosen one, the most useful first, those of which nothing is known last."""
    generators: tuple[NodeId, ...]
    """Machines too slow to train beside the fastest, and so in no layout that is chosen."""
    choosable: Collection[LayoutKind] = ONE_GANG
    """What could be chosen; the others are only predicted."""
    runs: Layout | None = None
    """What runs, where it isn't what does so unasked."""
    why: str = ""
    """Why that one is chosen, where it isn't for what is predicted."""

    @property
    def running(self) -> Layout:
        """Return what runs."""
        return self.unasked.layout if self.runs is None else self.runs

    @property
    def tokens_per_s(self) -> float | None:
        """Return how fast that is predicted to be; None where nobody can know."""
        known = (self.unasked, self.chosen, *self.others)
        return next((each.tokens_per_s for each in known if each.layout == self.running), None)


def plan_layouts(
    fleet: Fleet,
    job: PlannedTraining,
    unasked: Island,
    corrections: Mapping[LayoutKind, float] | None = None,
    choosable: Collection[LayoutKind] = ONE_GANG,
    runs: Layout | None = None,
) -> LayoutPlan:
    """Return the best layout and the others.

    Args:
        fleet: machines and wires.
        job: what is to be trained.
        unasked: who trains where nobody asks for anything else.
        corrections: what a layout of each kind is as fast as, compared with what is predicted.
        choosable: what may be chosen.
        runs: what runs, where that is known.
    """
    by_links = Layout.of(islands_by_link(fleet))
    requested = [Layout.of([unasked]), by_links, *([] if runs is None else [runs])]
    layouts = dict.fromkeys([*requested, *possible_layouts(fleet)])
    found = {layout: predict(fleet, job, layout, corrections) for layout in layouts}
    ranked = sorted(found.values(), key=_rank)
    by_default, islands = found[requested[0]], found[by_links]
    too_slow = slow(fleet)
    may_be_islands = by_links.kind is LayoutKind.ISLANDS and _can_be_chosen(
        islands, choosable, too_slow
    )
    why = _why_to_be_measured(by_default, islands) if may_be_islands else ""
    is_any_known = not by_default.unmeasured or (may_be_islands and not islands.unmeasured)
    if why:
        chosen = islands
    elif is_any_known:
        chosen = _best([each for each in ranked if _can_be_chosen(each, choosable, too_slow)])
    else:
        chosen = by_default
    others = tuple(each for each in ranked if each is not chosen)
    return LayoutPlan(chosen, by_default, others, tuple(sorted(too_slow)), choosable, runs, why)


def _can_be_chosen(
    prediction: Prediction, choosable: Collection[LayoutKind], too_slow: AbstractSet[NodeId]
) -> bool:
    layout = prediction.layout
    return layout.kind in choosable and not too_slow & {*layout.nodes}


def _best(ranked: Sequence[Prediction]) -> Prediction:
    """Return the most useful one; of islands and a gang that may be as good, the gang."""
    best = ranked[0]
    gang = next((each for each in ranked if each.layout.kind is not LayoutKind.ISLANDS), None)
    if best.layout.kind is not LayoutKind.ISLANDS or gang is None or not gang.useful_tokens_per_s:
        return best
    least = (1 + TOLERANCE) * gang.useful_tokens_per_s
    return best if (best.useful_tokens_per_s or 0.0) > least else gang


def _why_to_be_measured(by_default: Prediction, islands: Prediction) -> str:
    """Return why islands had best train though nobody knows how fast; empty where they hadn't."""
    if not islands.unmeasured:
        return ""
    if len({island.engine for island in islands.layout.islands}) > 1:
        return OWN_ENGINES
    if by_default.unmeasured and by_default.sync_s >= LONG_SUM_S:
        return f"one gang would sum for {_time(by_default.sync_s)} in each step, over its wires"
    return ""


def _rank(prediction: Prediction) -> tuple[float, int, tuple[Island, ...]]:
    """Return its place: of equally useful ones the smaller first."""
    islands = prediction.layout.islands
    return -(prediction.useful_tokens_per_s or 0.0), len(prediction.layout.nodes), islands


def plan_document(plan: LayoutPlan, names: Names) -> Row:
    """Return the plan for front ends."""
    generators = [names.get(node, node) for node in plan.generators]
    return {
        "chosen": _row(plan, plan.chosen, names) | {"why": _why(plan, names)},
        "unasked": title(plan.running, names),
        "is_asked": plan.runs is not None,
        "alternatives": [_row(plan, each, names) for each in plan.others[:SHOWN]],
        "not_shown": max(0, len(plan.others) - SHOWN),
        "generators": generators,
    }


def title(layout: Layout, names: Names) -> str:
    """Return who trains with whom, and how."""
    if layout.kind is LayoutKind.ISLANDS:
        listed = ", ".join(_island_title(island, names) for island in layout.islands)
        return f"{len(layout.islands)} islands: {listed}"
    (island,) = layout.islands
    how = "alone on" if layout.kind is LayoutKind.ALONE else "together, all-reduce on"
    return f"{_names(island.nodes, names)} {how} {island.engine}"


def _row(plan: LayoutPlan, prediction: Prediction, names: Names) -> Row:
    layout = prediction.layout
    return {
        "layout": str(layout.kind),
        "title": title(layout, names),
        "islands": [
            {"engine": each.engine, "nodes": [names.get(node, node) for node in each.nodes]}
            for each in layout.islands
        ],
        "is_choosable": layout.kind in plan.choosable,
        "tokens_per_s": _rounded(prediction.tokens_per_s),
        "useful_tokens_per_s": _rounded(prediction.useful_tokens_per_s),
        "step_s": None if prediction.step_s is None else round(prediction.step_s, 4),
        "sync_s": round(prediction.sync_s, 4),
        "inner_steps": (prediction.inner_steps or None)
        if layout.kind is LayoutKind.ISLANDS
        else None,
        "unmeasured": [names.get(node, node) for node in prediction.unmeasured],
        "has_assumed_wires": prediction.has_assumed_wires,
    }


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 1)


def _why(plan: LayoutPlan, names: Names) -> str:
    """Return in a few words why that one was chosen."""
    chosen = plan.chosen
    if plan.why:
        return plan.why
    if chosen.unmeasured:
        return "nothing is compared before that"
    runnable = [each for each in plan.others if each.layout.kind in plan.choosable]
    if held := _reason_against_islands(chosen, runnable):
        return held
    if chosen.layout.kind is LayoutKind.ALONE:
        return _why_alone(runnable)
    alone = [
        each for each in runnable if each.layout.kind is LayoutKind.ALONE and each.tokens_per_s
    ]
    return ", ".join(filter(None, [_wire_share(chosen), _compared(chosen, alone[:1], names)]))


def _reason_against_islands(chosen: Prediction, runnable: Sequence[Prediction]) -> str:
    """Say that islands would win by less than is certain; empty where they wouldn't win."""
    useful = chosen.useful_tokens_per_s
    islands = [each for each in runnable if each.layout.kind is LayoutKind.ISLANDS]
    best = max((each.useful_tokens_per_s or 0.0 for each in islands), default=0.0)
    if chosen.layout.kind is LayoutKind.ISLANDS or not useful or best <= useful:
        return ""
    return f"islands would win by {best / useful - 1:.0%}, which is less than predictions are off"


def _why_alone(others: Sequence[Prediction]) -> str:
    together = [
        each for each in others if each.layout.kind is LayoutKind.ALL_REDUCE and each.step_s
    ]
    if together:
        return f"with others {_wire_share(together[0])}"
    return "the fastest of them" if others else "no other machine could take part"


def _wire_share(prediction: Prediction) -> str:
    if prediction.step_s is None:
        return ""
    assumed = ", as such links usually are" if prediction.has_assumed_wires else ""
    if prediction.layout.kind is LayoutKind.ISLANDS:
        steps = f"{prediction.inner_steps} steps of {_time(prediction.step_s)}"
        return f"an exchange takes {_time(prediction.sync_s)} of each {steps}{assumed}"
    spent = f"{_time(prediction.sync_s)} of each step of {_time(prediction.step_s)}"
    return f"{spent} would go over the wire{assumed}"


def _compared(chosen: Prediction, alone: Sequence[Prediction], names: Names) -> str:
    if not alone or not chosen.tokens_per_s or not alone[0].tokens_per_s:
        return ""
    times = chosen.tokens_per_s / alone[0].tokens_per_s
    return f"{times:.1f} times {title(alone[0].layout, names)}"


def _island_title(island: Island, names: Names) -> str:
    return f"{_names(island.nodes, names, ' + ')} ({island.engine})"


def _names(nodes: Sequence[NodeId], names: Names, between: str = ", ") -> str:
    listed = between.join(names.get(node, node) for node in nodes[:NAMED])
    return f"{listed} and {len(nodes) - NAMED} more" if len(nodes) > NAMED else listed


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else duration(seconds)
