"""What the daemon that is asked adds to commands that start something, before the leader has them.

Owns the order of it: paths that are named are noted first, then what the cluster's file decides is
added, then models are copied into this node's store, and tried last. Doesn't know how any of that
is done.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jupiterd.daemon.commands.alarm_commands import AlarmView, with_alarms
from jupiterd.daemon.commands.dry_run import cycle_without_copying, training_without_copying
from jupiterd.ids import NodeId
from jupiterd.protocol.commands.alarm_commands import DismissAlarms
from jupiterd.protocol.commands.command import Command
from jupiterd.protocol.commands.cycle_commands import PauseCycle, PlanCycle, StartCycle
from jupiterd.protocol.commands.data_commands import PrepareData
from jupiterd.protocol.commands.train_commands import StartTraining

if TYPE_CHECKING:
    from jupiterd.daemon.commands.cluster_file_policy import ClusterFilePolicy


@dataclass(frozen=True)
class Machine:
    """What the machine that is asked does for commands that are given on it."""

    node: NodeId
    note_paths: Callable[[Command], Awaitable[None]]
    """Notes the paths that a command names, which may be read from then on."""
    bring_weights: Callable[[StartTraining], Awaitable[StartTraining]]
    bring_models: Callable[[StartCycle], Awaitable[StartCycle]]
    try_models: Callable[[StartCycle], Awaitable[None]]


@dataclass(frozen=True)
class LocalPreparations:
    """Of each command that has any."""

    machine: Machine
    file: "ClusterFilePolicy"
    alarms: AlarmView

    async def start_training(self, command: StartTraining) -> StartTraining:
        """Note its paths, and copy its weights into the store."""
        await self.machine.note_paths(command)
        return await self.machine.bring_weights(self.file.added_to_training(command))

    async def try_training(
        self, command: StartTraining, to_fetch: Collection[str]
    ) -> StartTraining:
        """Check its weights where they lie."""
        return await training_without_copying(self.file.added_to_training(command), to_fetch)

    async def start_cycle(self, command: StartCycle) -> StartCycle:
        """Note its paths, copy its models into the store, and let those write that are to write."""
        await self.machine.note_paths(command)
        brought = await self.machine.bring_models(self.file.added_to_cycle(command))
        await self.machine.try_models(brought)
        return brought

    async def try_cycle(self, command: StartCycle, to_fetch: Collection[str]) -> StartCycle:
        """Check its models where they lie."""
        given = self.file.added_to_cycle(command)
        await cycle_without_copying(given, to_fetch)
        await self.machine.try_models(given)
        return given

    async def plan_cycle(self, command: PlanCycle) -> PlanCycle:
        """Add what the cluster's file decides."""
        return self.file.added_to_cycle(command)

    async def prepare_data(self, command: PrepareData) -> PrepareData:
        """Note its paths."""
        await self.machine.note_paths(command)
        return command

    async def try_data(self, command: PrepareData, _to_fetch: Collection[str]) -> PrepareData:
        """Add nothing: what is only tried reads nothing."""
        return command

    async def pause_cycle(self, command: PauseCycle) -> PauseCycle:
        """Say where it was given."""
        return replace(command, node=self.machine.node)

    async def dismiss_alarms(self, command: DismissAlarms) -> DismissAlarms:
        """Say which alarms are meant."""
        return with_alarms(self.alarms, command)
