"""What people say of cutting a model over machines, and of their memory: checked before it starts.

Owns these checks, and what follows for islands. Doesn't know what fits, or flags.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from jupiterd.cluster.planning.engines import EngineChoice
from jupiterd.cluster.planning.layouts import Island
from jupiterd.cluster.training.asked_partition import AUTO, OFF
from jupiterd.cluster.training.memory_limits import meant, read, written
from jupiterd.daemon.leader.fleet_view import FleetView
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.planning.partition_support import check_all_know_partitions, check_can_cut
from jupiterd.daemon.planning.requested_machines import (
    AUTO_ISLANDS,
    PREFERRED,
    RequestedMachines,
)
from jupiterd.daemon.planning.requested_machines import OFF as NO_ISLANDS
from jupiterd.daemon.planning.training_estimate import is_to_be_cut
from jupiterd.errors import UsageError

if TYPE_CHECKING:  # these models take 8 MB, idle or not
    from jupiterd.cycle.runs.run_settings import RunSettings
    from jupiterd.cycle.training.plan import ModelShape, TrainPlan


_IN_ONE_GANG: Final = (AUTO_ISLANDS, PREFERRED, NO_ISLANDS)
"""Whoever says nothing else of islands, and a stage, means one gang."""


def checked_settings(machines: Machines, settings: "RunSettings") -> "RunSettings":
    """Return settings whose limits name ids, without islands where these can't be.

    Raises:
        NotFoundError: a node isn't known.
        UsageError: something that can't be, or isn't yet.
    """
    if settings.shard:
        option = f"--shard {settings.shard}"
        check_all_know_partitions(machines, option, of_base=bool(settings.lora))
    if settings.memory:
        check_all_know_partitions(machines, "--memory")
        limits = written(meant(settings.memory, machines.names()))
        settings = settings.model_copy(update={"memory": limits})
    return _one_gang(settings) if has_stage(settings) or settings.memory else settings


def has_stage(settings: "RunSettings") -> bool:
    """Say whether people have said in which stage the model is cut."""
    return settings.shard not in ("", AUTO, OFF)


def check_gang(machines: Machines, choice: EngineChoice, settings: "RunSettings") -> None:
    """Raise UsageError where a gang can't do what was said of it."""
    if not has_stage(settings) or settings.islands not in _IN_ONE_GANG:
        return
    option = f"--shard {settings.shard}"
    if len(choice.gang) == 1:
        raise UsageError(
            f"{option}: one rank trains, so there is nobody to share the model with",
            "start jupiterd on another machine, or leave out --shard",
        )
    check_can_cut(machines, choice, option, of_base=bool(settings.lora))


def with_partition(asked: RequestedMachines, settings: "RunSettings") -> RequestedMachines:
    """Return who is to train with what was said of the model's parts and of their memory."""
    islands, limits = settings.islands, read(settings.memory)
    return replace(asked, islands=islands, shard=settings.shard, limits=limits)


def in_one_gang(
    fleet_view: FleetView,
    asked: RequestedMachines,
    choice: EngineChoice,
    shape: "ModelShape",
    plan: "TrainPlan",
    settings: "RunSettings",
) -> "RunSettings":
    """Return the settings without islands where one gang holds together what no machine can."""
    if settings.islands not in (AUTO_ISLANDS, PREFERRED):
        return settings
    is_cut = is_to_be_cut(fleet_view, choice, shape, plan, asked)
    return _one_gang(settings) if is_cut else settings


def _one_gang(settings: "RunSettings") -> "RunSettings":
    """Return the settings without islands, unless people have asked for some."""
    if settings.islands in (AUTO_ISLANDS, PREFERRED):
        return settings.model_copy(update={"islands": NO_ISLANDS})
    return settings


def checked_islands_of(
    machines: Machines, islands: Sequence[Island], settings: "RunSettings"
) -> Sequence[Island]:
    """Return islands; raises UsageError where a stage is said of them that none can have."""
    if not islands or not has_stage(settings):
        return islands
    option = f"--shard {settings.shard}"
    if settings.lora:
        raise UsageError(
            f"{option}: islands hold the base beside an adapter whole",
            "let all machines train it in one gang: leave out --islands",
        )
    gangs = [EngineChoice(each.engine, each.nodes, "an island") for each in islands]
    several = [gang for gang in gangs if len(gang.gang) > 1]
    if not several:
        raise UsageError(
            f"{option}: each island is one machine, which has nobody to share the model with",
            "let several machines be an island, such as --islands 'torch:a,b torch:c'",
        )
    for gang in several:
        check_can_cut(machines, gang, option)
    return islands
