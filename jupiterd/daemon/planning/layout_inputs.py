"""What is known here of machines and links, for the planner of layouts.

Owns bringing it together: speeds from attempts that have ended, links as members tell of them.
Doesn't know what follows (`cluster.layouts`, `cluster.layout_choice`).
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

from jupiterd.cluster.links.allreduce_cost import (
    DIFFERENCE_BYTES,
    FEWEST_INNER_STEPS,
    Wire,
    inner_steps,
)
from jupiterd.cluster.planning.engines import (
    AUTO,
    MLX,
    TORCH,
    EngineChoice,
    able_on,
    own_engine,
    ranks_of,
)
from jupiterd.cluster.planning.layout_choice import LayoutPlan, plan_layouts
from jupiterd.cluster.planning.layouts import (
    CandidateMachine,
    Fleet,
    Island,
    Layout,
    PlannedTraining,
    islands_by_link,
    predict,
    slow,
)
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.placement import Placement
from jupiterd.daemon.planning.prediction_bias import corrections
from jupiterd.daemon.planning.rank_order import qualities
from jupiterd.daemon.planning.requested_machines import (
    ANYBODY,
    AS_PLANNED,
    Exchanges,
    RequestedMachines,
)
from jupiterd.daemon.planning.throughput_history import tokens_per_s_of_nodes
from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan

Trainers = Mapping[NodeId, Hardware]


def planned_layouts(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    trainers: Trainers,
    asked: RequestedMachines = ANYBODY,
) -> LayoutPlan:
    """Return the best layout of a training, and the others.

    Args:
        fleet_view: what is known of the machines.
        choice: who trains where nobody asks for anything else.
        shape: the model.
        plan: how it is trained.
        trainers: all machines that could take part, whatever their engines.
        asked: the engine that was asked for; others aren't considered then.
    """
    job = _job(shape, plan, asked.exchanges)
    unasked = Island.of(choice.engine, choice.gang)
    # A role may have changed since these were chosen.
    machines = {**_machines_of(fleet_view.machines, [unasked, *asked.chosen]), **trainers}
    engines = _engines(shape, machines, asked.engine, [unasked, *asked.chosen])
    fleet = _measured(fleet_view, shape, job, engines, machines)
    known = corrections(fleet_view.state, shape, fleet, job)
    layout = Layout.of(asked.chosen) if asked.chosen else None
    return plan_layouts(fleet, job, unasked, known, asked.choosable, layout)


def predicted_tokens_per_s(
    fleet_view: FleetView, choice: EngineChoice, shape: "ModelShape", plan: "TrainPlan"
) -> float | None:
    """Return what a gang that is about to train is predicted; None where nobody can know."""
    return predicted_of_islands(fleet_view, [Island.of(choice.engine, choice.gang)], shape, plan)


def predicted_of_islands(
    fleet_view: FleetView,
    islands: Sequence[Island],
    shape: "ModelShape",
    plan: "TrainPlan",
    exchanges: Exchanges = AS_PLANNED,
) -> float | None:
    """Return what islands that train are predicted, exchanges among it; None: nobody can know."""
    machines = _machines_of(fleet_view.machines, islands)
    if not islands or len(machines) < sum(len(island.nodes) for island in islands):
        return None
    job = _job(shape, plan, exchanges)
    fleet = _fleet_of(fleet_view, islands, machines, shape, job)
    known = corrections(fleet_view.state, shape, fleet, job)
    return predict(fleet, job, Layout.of(islands), known).tokens_per_s


def speeds_of_islands(
    fleet_view: FleetView, islands: Sequence[Island], shape: "ModelShape", plan: "TrainPlan"
) -> list[float]:
    """Return what each island trains on in a second by itself, as measured before.

    0 for all where one of them was never measured: a part of the speeds shares no step.
    """
    machines, unknown = _machines_of(fleet_view.machines, islands), [0.0] * len(islands)
    if len(machines) < sum(len(island.nodes) for island in islands):
        return unknown
    job = _job(shape, plan)
    fleet = _fleet_of(fleet_view, islands, machines, shape, job)
    found = [predict(fleet, job, Layout.of([island])).tokens_per_s or 0.0 for island in islands]
    return found if all(found) else unknown


def formed_islands(
    fleet_view: FleetView,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    trainers: Trainers,
    wanted: str = AUTO,
) -> tuple[Island, ...]:
    """Return the islands that machines make up by engine and link; see `planned_layouts`.

    On a machine that wasn't measured on what it is made for the engine is that.
    """
    able = _engines(shape, trainers, wanted, [Island.of(choice.engine, choice.gang)])
    return islands_by_link(_measured(fleet_view, shape, _job(shape, plan), able, trainers))


def slow_beside(
    fleet_view: FleetView,
    islands: Sequence[Island],
    newcomers: Collection[Island],
    shape: "ModelShape",
    plan: "TrainPlan",
) -> frozenset[NodeId]:
    """Return which machines are known to be too slow to train beside islands.

    newcomers: each of one machine, on the engine that it would train on
    """
    everybody = [*islands, *newcomers]
    machines = _machines_of(fleet_view.machines, everybody)
    known = [each for each in everybody if machines.keys() >= {*each.nodes}]
    fleet = _fleet_of(fleet_view, known, machines, shape, _job(shape, plan))
    return slow(fleet) & {node for island in newcomers for node in island.nodes}


def inner_steps_of(
    fleet_view: FleetView,
    islands: Sequence[Island],
    shape: "ModelShape",
    plan: "TrainPlan",
    pseudo_gradient_format: str,
    step_s: float | None = None,
) -> int:
    """Return how many steps islands had best train between two exchanges.

    Args:
        fleet_view: what is known of the machines.
        islands: who trains.
        shape: the model.
        plan: how it is trained.
        pseudo_gradient_format: int8, bf16 or fp32.
        step_s: how long one takes, as measured; else as it is predicted, and where nobody can know
            that, the exchanges are as frequent as they may be.
    """
    machines = _machines_of(fleet_view.machines, islands)
    known = [island for island in islands if machines.keys() >= {*island.nodes}]
    if len(known) < 2:
        return FEWEST_INNER_STEPS
    job = _job(shape, plan, Exchanges(pseudo_gradient_format))
    fleet = _fleet_of(fleet_view, known, machines, shape, job)
    predicted = predict(fleet, job, Layout.of(known))
    if step_s:
        return inner_steps(predicted.sync_s, step_s)
    return predicted.inner_steps if predicted.step_s else FEWEST_INNER_STEPS


def _job(
    shape: "ModelShape", plan: "TrainPlan", exchanges: Exchanges = AS_PLANNED
) -> PlannedTraining:
    from jupiterd.cycle.training.adapters.adapter_size import (
        trained_parameters,  # with the models it takes 8 MB
    )

    return PlannedTraining(
        trained_parameters(shape, plan.options),
        2 if plan.options.weights == "bf16" else 4,
        plan.batch_sequences * shape.seq_len,
        DIFFERENCE_BYTES[exchanges.pseudo_gradient_format],
        exchanges.every_steps,
        plan.steps,
    )


def _engines(
    shape: "ModelShape", trainers: Trainers, wanted: str, chosen: Sequence[Island]
) -> dict[NodeId, tuple[str, ...]]:
    """Return what each machine could train such a model on, if anything."""
    from jupiterd.cycle.training.architectures import can_train

    asked = (TORCH, MLX) if wanted == AUTO else (wanted,)
    usable = [each for each in asked if can_train(each, shape)]
    able = {engine: set(able_on(engine, trainers)) for engine in usable}
    for island in chosen:
        able.setdefault(island.engine, set()).update(island.nodes)
    found = {node: tuple(e for e in sorted(able) if node in able[e]) for node in trainers}
    return {node: engines for node, engines in found.items() if engines}


def _machines_of(machines: Machines, islands: Sequence[Island]) -> dict[NodeId, Hardware]:
    """Return the machines of islands, as far as their hardware is known."""
    found = {node: machines.hardware_of(node) for island in islands for node in island.nodes}
    return {node: hardware for node, hardware in found.items() if hardware is not None}


def _fleet_of(
    fleet_view: FleetView,
    islands: Sequence[Island],
    machines: Trainers,
    shape: "ModelShape",
    job: PlannedTraining,
) -> Fleet:
    """Return the fleet of islands' machines, each with its island's engine."""
    engines = {node: (island.engine,) for island in islands for node in island.nodes}
    return _measured(fleet_view, shape, job, engines, machines)


def _measured(
    fleet_view: FleetView,
    shape: "ModelShape",
    job: PlannedTraining,
    engines: Mapping[NodeId, tuple[str, ...]],
    trainers: Trainers,
) -> Fleet:
    """Return the machines with their engines and links, as far as anything was measured."""
    known = qualities(fleet_view.connectivity, engines)
    wires = {frozenset(ends): Wire.of(known[ends]) for ends in combinations(engines, 2)}
    blank = {
        node: _machine(fleet_view.placement, node, trainers[node], engines[node], {})
        for node in engines
    }
    speeds = {
        engine: tokens_per_s_of_nodes(
            fleet_view.state, engine, shape, partial(_sum_s, Fleet(blank, wires), job, engine)
        )
        for engine in {engine for each in engines.values() for engine in each}
    }
    machines = {
        n: _machine(fleet_view.placement, n, trainers[n], engines[n], speeds) for n in engines
    }
    return Fleet(machines, wires)


def _machine(
    placement: Placement,
    node: NodeId,
    hardware: Hardware,
    engines: Collection[str],
    speeds: Mapping[str, Mapping[NodeId, float]],
) -> CandidateMachine:
    return CandidateMachine(
        node,
        {engine: speeds.get(engine, {}).get(node, 0.0) for engine in engines},
        {engine: ranks_of(hardware, engine) for engine in engines},
        own_engine(hardware),
        node in placement.pinned_trainers(),
    )


def _sum_s(fleet: Fleet, job: PlannedTraining, engine: str, nodes: Collection[NodeId]) -> float:
    """Return how long a gang sums in each step; 0 where one is gone or a link wasn't measured."""
    if not set(nodes) <= set(fleet.machines):
        return 0.0
    predicted = predict(fleet, job, Layout.of([Island.of(engine, nodes)]))
    return 0.0 if predicted.has_assumed_wires else predicted.sync_s
