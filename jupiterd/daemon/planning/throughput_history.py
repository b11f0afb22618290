"""How fast a model was trained here before, as the ledger tells.

Owns reading that from attempts that have ended, and from the outer steps of islands. Doesn't know
why anybody asks. An attempt's time holds its start as well, so what is said is rather too little
than too much (`cluster.attempt_throughput`). Outer steps tell how long an island took by itself.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import TrainingStarted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_trained_in, islands_in
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.links.allreduce_cost import DIFFERENCE_BYTES
from jupiterd.cluster.planning import outer_throughput
from jupiterd.cluster.planning.attempt_throughput import ended, stretch
from jupiterd.cluster.planning.layouts import Island, Layout
from jupiterd.cluster.planning.outer_throughput import Stretch
from jupiterd.ids import CycleId, NodeId

if TYPE_CHECKING:
    from jupiterd.cycle.training.plan import ModelShape

NEWEST_EPOCHS = 50
"""So many are looked at: machines and links change, and a run that was often struck has many."""

LEAST_COMPUTED = 0.1
"""Of an attempt's time: so much at the least was computed, whatever its sums are taken for."""


@dataclass(frozen=True)
class Measured:
    """What one gang has trained in one go."""

    gang: tuple[NodeId, ...]
    """The node of each rank."""
    did: Stretch

    @property
    def of_a_rank(self) -> float:
        """Return tokens per second of each rank."""
        return self.did.tokens_per_s / len(self.gang)


@dataclass(frozen=True)
class MeasuredLayout:
    """What machines have done together."""

    layout: Layout
    did: Stretch
    every_steps: int = 0
    """How often islands have exchanged, as most of their rounds went."""
    difference_bytes: int = 1
    """Of a weight in what islands exchanged."""


def tokens_per_s_of_a_rank(state: State, engine: str, shape: "ModelShape") -> float:
    """Return what one rank trained on in a second when that model was last trained; 0: never."""
    return next((m.of_a_rank for m in _gangs(state, engine, shape) if m.did.tokens > 0), 0.0)


def tokens_per_s_of_nodes(
    state: State, engine: str, shape: "ModelShape", sum_s: Callable[[Collection[NodeId]], float]
) -> dict[NodeId, float]:
    """Return what each node trains on in a second by itself; those that were never measured lack.

    What it trained alone tells it, the newest such thing. Else a gang does: its ranks count alike,
    since nothing is kept of each, and what their sums took is left out of the time.

    sum_s: how long a gang of these nodes sums in each step; 0 where that isn't known either
    """
    alone: dict[NodeId, float] = {}
    shared: dict[NodeId, float] = {}
    sums_s: dict[frozenset[NodeId], float] = {}
    for measured in islice(_gangs(state, engine, shape), NEWEST_EPOCHS):
        did, nodes = measured.did, frozenset(measured.gang)
        if did.tokens <= 0:
            continue
        if nodes not in sums_s:  # a ring's best order takes a while to find
            sums_s[nodes] = sum_s(nodes)
        computing_s = max(did.elapsed_s - did.steps * sums_s[nodes], LEAST_COMPUTED * did.elapsed_s)
        of_a_rank = did.tokens / computing_s / len(measured.gang)
        for node in nodes:
            found = alone if len(nodes) == 1 else shared
            found.setdefault(node, of_a_rank * measured.gang.count(node))
    return shared | alone


def measured_layouts(state: State, shape: "ModelShape") -> Iterator[MeasuredLayout]:
    """Yield what several machines have done together with such a model, the newest first."""
    for run in _runs_of(state, shape.size):
        for opened, closed in reversed(list(ended(run))):
            engine, _, _ = opened.engine.partition("/")
            did = stretch(run, opened, closed)
            if len(set(opened.gang)) > 1 and did.tokens > 0:
                yield MeasuredLayout(Layout.of([Island.of(engine, opened.gang)]), did)
        yield from _of_islands(state, run)


def _of_islands(state: State, run: CycleState) -> Iterator[MeasuredLayout]:
    """Yield what the islands of a run's rounds have done together, those of the newest first.

    Only of rounds that are over: what runs isn't predicted by itself. Of each the islands count
    that trained most of it: who came late or was lost would pass for as fast as all of them.
    """
    cycle_id = None if run.begun is None else run.begun.cycle
    rounds = sorted({step.round for step in run.outer_steps()}, reverse=True)
    over = [each for each in rounds if run.has_nothing_to_do or is_trained_in(run, each)]
    for number in over if cycle_id is not None else ():
        line = run.outer_branch(number)
        usual_ones = outer_throughput.usual_islands(line)
        did = outer_throughput.of_all(line, islands=usual_ones)
        islands = islands_in(state.cycles, CycleId(cycle_id or ""), number)
        parts = [each for _, each in islands if each.cycle in usual_ones]
        if did.tokens and len(parts) > 1:
            layout = Layout.of(Island.of(each.engine, each.nodes) for each in parts)
            usual = median(step.steps for step in line.values() if step.steps)
            sent = DIFFERENCE_BYTES.get(str(parts[0].settings.get("ways")), 1)
            yield MeasuredLayout(layout, did, round(usual), sent)


def _gangs(state: State, engine: str, shape: "ModelShape") -> Iterator[Measured]:
    """Yield what has been measured of such a model on such an engine, the newest first."""
    for run in _runs_of(state, shape.size):
        started, attempts = run.training, reversed(list(ended(run)))
        if started is not None and started.parent and run.attempts_opened:
            yield from _island(state, run, started) if started.engine == engine else ()
            continue
        for opened, closed in attempts:
            if opened.engine.partition("/")[0] == engine:
                yield Measured(opened.gang, stretch(run, opened, closed))


def _island(state: State, run: CycleState, started: TrainingStarted) -> Iterator[Measured]:
    """Yield what an island has done; the gang that it had last counts for all of it."""
    parent = state.cycles.get(CycleId(started.parent))
    line = {} if parent is None else parent.outer_branch(started.parent_round)
    last = run.attempts_opened[max(run.attempts_opened)]
    if (did := outer_throughput.of_island(line, started.cycle)).tokens:
        yield Measured(last.gang, did)


def _runs_of(state: State, size: str) -> Iterator[CycleState]:
    cycles = state.cycles.values()
    runs = sorted(cycles, key=lambda run: run.start_order, reverse=True)
    return (run for run in runs if _is_of(run, size))


def _is_of(run: CycleState, size: str) -> bool:
    if run.training is not None:
        return run.training.model == size
    return run.started is not None and run.started.size == size
