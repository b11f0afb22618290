"""Who could train with whom: every layout that makes sense, and what it would come to.

Owns the layouts and their prediction. Pure. Doesn't know which one is chosen (`layout_choice`), or
who has measured machines and wires. A layout is a set of islands: those within one share each step,
and islands exchange weight differences now and then. One island of one machine trains alone.

    layout        a step takes
    alone         tokens / speed
    all-reduce    tokens / speed of all, and the ring's sum over its slowest wire (`allreduce_cost`)
    islands       tokens / speed of all, the sums within, and its part of an exchange

All share a step by speed, so they are done with it together. A prediction is multiplied by what
earlier ones of its kind were wrong by (`prediction_error`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, combinations
from typing import Final

from jupiterd.cluster.links.allreduce_cost import (
    Wire,
    all_reduce_s,
    computed_share,
    exchange_s,
    exchanged_bytes,
    inner_steps,
)
from jupiterd.cluster.links.ring_order import best_order
from jupiterd.cluster.planning.island_gain import retained_gain
from jupiterd.cluster.planning.roles import MIN_TRAINING_SHARE
from jupiterd.ids import NodeId

FAST_BYTES_PER_S: Final = 0.6e9
"""Machines joined by less are islands of their own: 10 Gbit/s and Thunderbolt are more."""

USUAL_OUTER_STEPS: Final = 120
"""Of a training whose length nobody knows."""


class LayoutKind(StrEnum):
    """How machines train together."""

    ALONE = "alone"
    ALL_REDUCE = "all-reduce"
    ISLANDS = "islands"


ONE_GANG: Final = frozenset({LayoutKind.ALONE, LayoutKind.ALL_REDUCE})
"""What a training can be done by whose people want no islands."""


@dataclass(frozen=True)
class CandidateMachine:
    """One that could train."""

    node: NodeId
    speeds: Mapping[str, float]
    """Engine -> tokens it trains on in a second by itself; 0: nobody has measured it."""
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    """Engine -> ranks of it there, where it isn't one."""
    own: str = ""
    """What it is made for; empty: nobody knows."""
    is_pinned: bool = False
    """People want it to train, however slow it is."""

    @property
    def engine(self) -> str:
        """Return what it is fastest with; what it is made for, as long as that wasn't measured."""
        if self.speeds.get(self.own) == 0:
            return self.own
        return max(sorted(self.speeds), key=lambda engine: self.speeds[engine])

    @property
    def speed(self) -> float:
        """Return its speed with that."""
        return self.speeds[self.engine]


@dataclass(frozen=True)
class Fleet:
    """All machines, and the wires between them."""

    machines: Mapping[NodeId, CandidateMachine]
    wires: Mapping[frozenset[NodeId], Wire]
    """By their two ends; each pair has one."""

    def wire(self, one: NodeId, other: NodeId) -> Wire:
        """Return the wire between two machines."""
        return self.wires[frozenset((one, other))]


@dataclass(frozen=True)
class PlannedTraining:
    """What is to be trained."""

    parameters: int
    gradient_bytes: int
    """Of one number of a gradient."""
    tokens_per_step: int
    """Of all machines together."""
    difference_bytes: int = 1
    """Of one number of what islands send each other."""
    every_steps: int = 0
    """How often islands exchange, where people have said so; 0: as often as is best."""
    steps: int = 0
    """Of the whole training; 0: nobody knows yet."""


@dataclass(frozen=True, order=True)
class Island:
    """Machines that share each step, over one engine."""

    engine: str
    nodes: tuple[NodeId, ...]
    """In the order of their ids."""

    @classmethod
    def of(cls, engine: str, nodes: Iterable[NodeId]) -> "Island":
        """Return the island of these machines."""
        return cls(engine, tuple(sorted(set(nodes))))


@dataclass(frozen=True)
class Layout:
    """Who trains with whom."""

    islands: tuple[Island, ...]
    """In their own order."""

    @classmethod
    def of(cls, islands: Iterable[Island]) -> "Layout":
        """Return the layout of these islands."""
        return cls(tuple(sorted(islands)))

    @property
    def kind(self) -> LayoutKind:
        """Return how its machines train together."""
        if len(self.islands) > 1:
            return LayoutKind.ISLANDS
        return LayoutKind.ALONE if len(self.nodes) == 1 else LayoutKind.ALL_REDUCE

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """Return all its machines."""
        return tuple(node for island in self.islands for node in island.nodes)


@dataclass(frozen=True)
class Prediction:
    """What a layout would come to."""

    layout: Layout
    sync_s: float
    """Of one exchange: each step's in all-reduce, each `inner_steps`-th one's between islands."""
    inner_steps: int = 1
    """Steps between two exchanges; 0: nobody can know."""
    step_s: float | None = None
    """Of one step with its part of the exchange; None where nobody can know."""
    tokens_per_s: float | None = None
    useful_tokens_per_s: float | None = None
    """The same, with what islands gain counted as what it is worth: the best layout has most."""
    unmeasured: tuple[NodeId, ...] = ()
    """Machines whose speed nobody has measured: so nothing can be said."""
    has_assumed_wires: bool = False
    """A wire that it rests on was never measured."""


def possible_layouts(fleet: Fleet) -> tuple[Layout, ...]:
    """Return every layout that may be the best one, each once."""
    strong = [
        machine for node, machine in sorted(fleet.machines.items()) if node not in slow(fleet)
    ]
    found = [*_alone(fleet), *_rings(fleet, strong), *_island_layouts(fleet, strong)]
    return tuple(dict.fromkeys(found))


def islands_by_link(fleet: Fleet) -> tuple[Island, ...]:
    """Return islands by engine and link, or of one machine each; one where there is one machine.

    Machines that are too slow beside the fastest have no part in it, as long as two others have.
    """
    strong = [each for node, each in sorted(fleet.machines.items()) if node not in slow(fleet)]
    able = strong if len(strong) > 1 else [each for _, each in sorted(fleet.machines.items())]
    groups = _by_link(fleet, able)
    if len(groups) < 2:
        groups = [[machine] for machine in able]
    return Layout.of(_islands(groups)).islands


def slow(fleet: Fleet) -> frozenset[NodeId]:
    """Return who is so much slower than the fastest that it does better to generate.

    Not whom people want to train.
    """
    machines = fleet.machines.values()
    least = MIN_TRAINING_SHARE * max((each.speed for each in machines), default=0.0)
    free = [each for each in machines if not each.is_pinned]
    return frozenset(each.node for each in free if 0 < each.speed < least)


def predict(
    fleet: Fleet,
    job: PlannedTraining,
    layout: Layout,
    corrections: Mapping[LayoutKind, float] | None = None,
    every_steps: int = 0,
) -> Prediction:
    """Return what a layout would come to.

    Args:
        fleet: machines and wires.
        job: what is to be trained.
        layout: who trains with whom.
        corrections: what a layout of each kind is as fast as, compared with what is predicted here.
        every_steps: how often islands exchange; 0: as often as people want, or as is best.
    """
    speeds = [_speed(fleet, each) for each in layout.islands]
    rings = [_ring_wires(fleet, job, each) for each in layout.islands]
    sums_s = [_sum_s(fleet, job, *pair) for pair in zip(layout.islands, rings, strict=True)]
    between = _wires_between(fleet, job, layout.islands)
    count = len(layout.islands)
    known = Prediction(
        layout,
        sync_s=_exchange_s(job, count, between) if count > 1 else sums_s[0],
        unmeasured=_unmeasured(fleet, layout),
        has_assumed_wires=not all(wire.is_measured for wire in chain(*rings, between)),
    )
    if count > 1:
        known = replace(known, inner_steps=every_steps or job.every_steps)
    if known.unmeasured:
        return known
    return _with_times(job, known, speeds, sums_s, (corrections or {}).get(layout.kind, 1.0))


def _with_times(
    job: PlannedTraining,
    known: Prediction,
    speeds: Sequence[float],
    sums_s: Sequence[float],
    factor: float,
) -> Prediction:
    step_s = _shared_step_s(job, speeds, sums_s)
    steps, share, one_alone = 1, 1.0, 0.0
    if known.layout.kind is LayoutKind.ISLANDS:
        steps = known.inner_steps or inner_steps(known.sync_s, step_s)
        share = computed_share(steps, step_s, known.sync_s)
        pairs = zip(speeds, sums_s, strict=True)
        one_alone = max(job.tokens_per_step / _shared_step_s(job, [v], [s]) for v, s in pairs)
    rate = factor * share * job.tokens_per_step / step_s
    gain = max(0.0, rate - one_alone) if one_alone else 0.0
    return replace(
        known,
        inner_steps=steps,
        step_s=job.tokens_per_step / rate,
        tokens_per_s=rate,
        useful_tokens_per_s=rate - (1 - retained_gain(_outer_steps(job, steps))) * gain,
    )


def _outer_steps(job: PlannedTraining, inner_steps: int) -> float:
    return job.steps / inner_steps if job.steps else USUAL_OUTER_STEPS


def _exchange_s(job: PlannedTraining, islands: int, wires: Sequence[Wire]) -> float:
    return exchange_s(job.parameters, islands, wires, job.difference_bytes)


def _shared_step_s(job: PlannedTraining, speeds: Sequence[float], sums_s: Sequence[float]) -> float:
    """Return how long a step takes that islands share so that they are done together.

    Each computes for what its own sum leaves it of that time.
    """
    lost = sum(speed * sum_s for speed, sum_s in zip(speeds, sums_s, strict=True))
    return max((job.tokens_per_step + lost) / sum(speeds), *sums_s)


def _speed(fleet: Fleet, island: Island) -> float:
    return sum(fleet.machines[node].speeds.get(island.engine, 0.0) for node in island.nodes)


def _unmeasured(fleet: Fleet, layout: Layout) -> tuple[NodeId, ...]:
    return tuple(
        node
        for island in layout.islands
        for node in island.nodes
        if not fleet.machines[node].speeds.get(island.engine)
    )


def _ranks(fleet: Fleet, island: Island) -> int:
    return sum(fleet.machines[node].ranks.get(island.engine, 1) for node in island.nodes)


def _sum_s(fleet: Fleet, job: PlannedTraining, island: Island, ring: Sequence[Wire]) -> float:
    """Return how long an island takes to sum the gradients of a step."""
    return all_reduce_s(job.parameters, job.gradient_bytes, _ranks(fleet, island), ring)


def _ring_wires(fleet: Fleet, job: PlannedTraining, island: Island) -> list[Wire]:
    """Return the wires of the best ring."""
    if len(island.nodes) < 2:
        return []
    piece_bytes = job.parameters * job.gradient_bytes / _ranks(fleet, island)
    ring = best_order(island.nodes, lambda a, b: fleet.wire(a, b).time_s(piece_bytes))
    return [fleet.wire(node, ring[(n + 1) % len(ring)]) for n, node in enumerate(ring)]


def _wires_between(fleet: Fleet, job: PlannedTraining, islands: Sequence[Island]) -> list[Wire]:
    """Return the best wire between each two islands."""
    size_bytes = exchanged_bytes(job.parameters, len(islands), job.difference_bytes)
    return [
        min(
            (fleet.wire(a, b) for a in one.nodes for b in other.nodes),
            key=lambda wire: wire.time_s(size_bytes),
        )
        for one, other in combinations(islands, 2)
    ]


def _alone(fleet: Fleet) -> Iterator[Layout]:
    for node, machine in sorted(fleet.machines.items()):
        for engine in sorted(machine.speeds):
            yield Layout.of([Island.of(engine, [node])])


def _rings(fleet: Fleet, strong: Sequence[CandidateMachine]) -> Iterator[Layout]:
    """Yield one gang of all that share an engine, and of each group with fast links."""
    for engine in sorted({engine for each in strong for engine in each.speeds}):
        able = [machine for machine in strong if engine in machine.speeds]
        for group in [able, *_fast_groups(fleet, able)]:
            if len(group) > 1:
                yield Layout.of([Island.of(engine, (machine.node for machine in group))])


def _island_layouts(fleet: Fleet, strong: Sequence[CandidateMachine]) -> Iterator[Layout]:
    """Yield islands by engine, by engine and link, and of one machine each."""
    by_engine = _by_engine(strong)
    for groups in (by_engine, _by_link(fleet, strong), [[machine] for machine in strong]):
        if len(groups) > 1:
            yield Layout.of(_islands(groups))


def _islands(groups: Iterable[Sequence[CandidateMachine]]) -> Iterator[Island]:
    for group in groups:
        yield Island.of(group[0].engine, (machine.node for machine in group))


def _by_engine(machines: Iterable[CandidateMachine]) -> list[list[CandidateMachine]]:
    found: dict[str, list[CandidateMachine]] = {}
    for machine in machines:
        found.setdefault(machine.engine, []).append(machine)
    return list(found.values())


def _by_link(fleet: Fleet, machines: Iterable[CandidateMachine]) -> list[list[CandidateMachine]]:
    """Return groups of one engine, within which links are fast."""
    return [group for able in _by_engine(machines) for group in _fast_groups(fleet, able)]


def _fast_groups(
    fleet: Fleet, machines: Sequence[CandidateMachine]
) -> list[list[CandidateMachine]]:
    """Return groups within which every two machines are joined by a fast wire."""
    groups: list[list[CandidateMachine]] = []
    for machine in machines:
        for group in groups:
            wires = [fleet.wire(machine.node, other.node) for other in group]
            if all(wire.bytes_per_s >= FAST_BYTES_PER_S for wire in wires):
                group.append(machine)
                break
        else:
            groups.append([machine])
    return groups
