"""Whether islands train a run that is asked for, and which: decided once, and kept in its settings.

Owns that decision, and the same for a cycle's round. Doesn't know how islands are formed
(`cluster.layouts`), when a round is decided on (`train_phase`), or what they do.
"""

from collections.abc import Collection, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from jupiterd.cluster.planning.engines import EngineChoice, choose_engine, ranks_of
from jupiterd.cluster.planning.island_nodes import meant, read, written
from jupiterd.cluster.planning.layouts import Island, LayoutKind
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.layout_inputs import formed_islands, planned_layouts
from jupiterd.daemon.planning.partition_request import checked_islands_of
from jupiterd.daemon.planning.requested_machines import (
    AUTO_ISLANDS,
    OFF,
    ON,
    PREFERRED,
    Exchanges,
    RequestedMachines,
)
from jupiterd.errors import MissingExtraError, PeerUnreachableError, UsageError
from jupiterd.ids import NodeId

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.runs.run_settings import RunSettings
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan

LEAST_ISLANDS = 2


def islands_of_settings(settings: "RunSettings") -> Sequence[Island]:
    """Return the islands that train a run; none where one gang does."""
    return read(settings.island_nodes)


def with_gang(
    fleet_view: FleetView,
    asked: RequestedMachines,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
) -> "RunSettings":
    """Return a run's settings with who trains it: so many ranks, and the islands if there are any.

    Args:
        fleet_view: what is known of the machines.
        asked: who is to train.
        choice: the gang, where there are no islands.
        shape: the model.
        plan: how it is trained by that gang.
        settings: as people asked for them.

    Raises:
        UsageError: islands are asked for, and one machine could train.
    """
    machines = asked.machines(fleet_view.placement)
    if settings.islands == AUTO_ISLANDS:
        of_gang = _settled(settings, len(choice.gang)).batch_sequences
        room = of_gang if settings.least_batch else plan.batch_sequences
        islands = _best(fleet_view, asked, choice, shape, plan, room)
        return _settled(settings, len(choice.gang), islands)
    if ":" in settings.islands:
        islands = meant(settings.islands, fleet_view.machines.names())
        machines = _machines_of(fleet_view.machines, islands)
    elif settings.islands in (ON, PREFERRED):
        islands = formed_islands(fleet_view, choice, shape, plan, machines, asked.engine)
        if settings.islands == PREFERRED and len(islands) < LEAST_ISLANDS:
            return _settled(settings, len(choice.gang))
    else:
        return _settled(settings, len(choice.gang))
    _check_that_there_are_two(islands, machines)
    return _settled(settings, _ranks(islands, machines), islands)


def wanted_of_round(
    engine: str, settings: "RunSettings", nodes: tuple[NodeId, ...] = ()
) -> RequestedMachines:
    """Return who is to train a cycle's round, and how, as people said of the cycle.

    nodes: that they named; empty: anybody
    """
    exchanges = Exchanges.of(settings)
    return RequestedMachines(engine, nodes, settings.max_ranks, settings.islands, exchanges)


def checked_islands(
    fleet_view: FleetView,
    asked: RequestedMachines,
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
) -> "RunSettings":
    """Return what a cycle's people ask of islands, with the nodes that they have named.

    A step whose sequences follow from the text has one for each rank of theirs at the least.

    Args:
        fleet_view: what is known of the machines.
        asked: who is to train.
        shape: the model.
        plan: how the first round is trained.
        settings: what is asked for.

    Raises:
        NotFoundError: a node isn't known.
        UsageError: islands are asked for that can't be.
    """
    if settings.islands in (ON, PREFERRED):
        machines = asked.machines(fleet_view.placement)
        islands = _formed(fleet_view, asked.engine, shape, plan, machines) if machines else ()
        if settings.islands == PREFERRED and len(islands) < LEAST_ISLANDS:
            return settings
        _check_that_there_are_two(islands, machines)
    elif ":" in settings.islands:
        islands = meant(settings.islands, fleet_view.machines.names())
        machines = _machines_of(fleet_view.machines, islands)
    else:
        return settings
    most = _most_ranks(shape, plan, settings)
    if (ranks := _ranks(islands, machines)) > most:
        raise UsageError(
            f"--islands: {ranks} ranks can't share a step of {most} sequences",
            "name fewer machines, or raise training.batch_sequences in the domain file",
        )
    named = islands if ":" in settings.islands else ()
    asked_for = settings.model_copy(update={"island_nodes": written(named)})
    return asked_for.shared_by(ranks)


def islands_of_round(
    fleet_view: FleetView,
    asked: RequestedMachines,
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
) -> Sequence[Island]:
    """Return the islands that had best train a cycle's round, of who is here; none: one gang had.

    One gang also trains where islands are asked for, and one machine alone is here by now. They may
    be more ranks than the plan has sequences in a step, where these follow from the text: see
    `RunSettings.shared_by`.

    Args:
        fleet_view: what is known of the machines.
        asked: who is to train.
        shape: the model.
        plan: how the round is trained.
        settings: what was asked for.

    Raises:
        PeerUnreachableError: nobody who is alive can train, on that engine.
    """
    if settings.island_nodes or settings.islands == OFF:
        return read(settings.island_nodes)
    machines, room = asked.machines(fleet_view.placement), _most_ranks(shape, plan, settings)
    if not machines:
        raise PeerUnreachableError("no node that is alive can train")
    if settings.islands not in (ON, PREFERRED):
        return _best(fleet_view, asked, _gang(asked.engine, plan, machines), shape, plan, room)
    islands = _formed(fleet_view, asked.engine, shape, plan, machines)
    return islands if len(islands) > 1 and _ranks(islands, machines) <= room else ()


def islands_of_first_round(
    fleet_view: FleetView,
    asked: RequestedMachines,
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
) -> Sequence[Island]:
    """Return the same, as a cycle is asked for.

    Raises:
        PeerUnreachableError: as above.
        UsageError: a stage is asked for that none of the islands can have.
    """
    found = islands_of_round(fleet_view, asked, shape, plan, settings)
    return checked_islands_of(fleet_view.machines, found, settings)


def ranks_in(machines: Machines, islands: Sequence[Island]) -> int:
    """Return how many ranks islands have, on those of their machines that are here."""
    found = {node: machines.hardware_of(node) for island in islands for node in island.nodes}
    pairs = ((found[node], island.engine) for island in islands for node in island.nodes)
    return sum(ranks_of(machine, engine) for machine, engine in pairs if machine is not None)


def _most_ranks(shape: "ModelShape", plan: "TrainPlan", settings: "RunSettings") -> int:
    """Return how many ranks can share a step of a round: each has a sequence at the least."""
    of_size = shape.recipe.batch_sequences if settings.least_batch else 0
    return max(plan.batch_sequences, of_size)


def _formed(
    fleet_view: FleetView,
    engine: str,
    shape: "ModelShape",
    plan: "TrainPlan",
    machines: Mapping[NodeId, Hardware],
) -> Sequence[Island]:
    choice = _gang(engine, plan, machines)
    return formed_islands(fleet_view, choice, shape, plan, machines, engine)


def _gang(engine: str, plan: "TrainPlan", machines: Mapping[NodeId, Hardware]) -> EngineChoice:
    try:
        return choose_engine(engine, machines, most_ranks=plan.batch_sequences)
    except MissingExtraError as error:  # when the cycle began, somebody had it
        raise PeerUnreachableError(error.message, error.hint) from error


def _settled(settings: "RunSettings", ranks: int, islands: Sequence[Island] = ()) -> "RunSettings":
    return settings.model_copy(update={"ranks": ranks, "island_nodes": written(islands)})


def _best(
    fleet_view: FleetView,
    asked: RequestedMachines,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    room: int,
) -> Sequence[Island]:
    """Return the islands of the best layout; none where one gang is better, or nobody knows.

    room: ranks that can share a step
    """
    if asked.most:
        return ()
    machines = asked.machines(fleet_view.placement)
    best = planned_layouts(fleet_view, choice, shape, plan, machines, asked).chosen.layout
    has_enough = _ranks(best.islands, machines) <= room
    return best.islands if best.kind is LayoutKind.ISLANDS and has_enough else ()


def _check_that_there_are_two(islands: Sequence[Island], machines: Collection[NodeId]) -> None:
    if len(islands) < LEAST_ISLANDS:
        raise UsageError(
            f"islands need two machines that could train, and there is {len(machines)}",
            "start jupiterd on another machine, or train with --islands off",
        )


def _machines_of(machines: Machines, islands: Sequence[Island]) -> Mapping[NodeId, Hardware]:
    """Return the machines that people have named.

    Raises:
        UsageError: one isn't here, or hasn't got the engine that it is to train on.
    """
    found: dict[NodeId, Hardware] = {}
    for island in islands:
        for node in island.nodes:
            hardware = machines.hardware_of(node)
            if hardware is None or island.engine not in hardware.engines:
                name = machines.name_of(node)
                raise UsageError(
                    f"--islands: {name} has no {island.engine}",
                    f"jupiterctl node show {quote(name)}",
                )
            found[node] = hardware
    return found


def _ranks(islands: Sequence[Island], machines: Mapping[NodeId, Hardware]) -> int:
    return sum(ranks_of(machines[n], island.engine) for island in islands for n in island.nodes)
