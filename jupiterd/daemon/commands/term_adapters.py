"""Each command gets the parts of a term that it uses, and no others.

Owns which those are. Doesn't know what a command does with them, or its place in the table
(`verb_table`).
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from jupiterd.daemon.commands import (
    branch_commands,
    cycle_lifecycle,
    member_commands,
    train_commands,
)
from jupiterd.daemon.commands.verb import CommandResult
from jupiterd.daemon.leader.admissions import Admissions
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.protocol.commands.command import Command
from jupiterd.protocol.commands.cycle_commands import (
    ExtendCycle,
    PlanCycle,
    StartCycle,
    SwitchBranch,
)
from jupiterd.protocol.commands.member_commands import PinRole
from jupiterd.protocol.commands.train_commands import StartTraining

C = TypeVar("C", bound=Command)


def with_term(
    carry_out: Callable[[Term, C], Awaitable[CommandResult]],
) -> Callable[[TermServices, C], Awaitable[CommandResult]]:
    """Adapt a command that reads the ledger, and records."""

    async def carry(services: TermServices, command: C) -> CommandResult:
        return await carry_out(services.term, command)

    return carry


def with_machines(
    carry_out: Callable[[Term, Machines, C], Awaitable[CommandResult]],
) -> Callable[[TermServices, C], Awaitable[CommandResult]]:
    """Adapt a command that needs the members' names as well."""

    async def carry(services: TermServices, command: C) -> CommandResult:
        return await carry_out(services.term, services.machines, command)

    return carry


def with_admissions(
    carry_out: Callable[[Term, Admissions, C], Awaitable[CommandResult]],
) -> Callable[[TermServices, C], Awaitable[CommandResult]]:
    """Adapt a command that lets newcomers in."""

    async def carry(services: TermServices, command: C) -> CommandResult:
        return await carry_out(services.term, services.admissions, command)

    return carry


async def pin_role(services: TermServices, command: PinRole) -> CommandResult:
    """See `member_commands`."""
    return await member_commands.pin_role(services.term, services.placement, command)


async def start_training(services: TermServices, command: StartTraining) -> CommandResult:
    """See `train_commands`."""
    fleet, artifacts = services.fleet_view, services.reach.artifact_cache
    return await train_commands.start_training(services.term, fleet, artifacts, command)


async def predicted_training(services: TermServices, command: StartTraining) -> CommandResult:
    """See `train_commands`."""
    fleet, artifacts = services.fleet_view, services.reach.artifact_cache
    return await train_commands.predicted_training(fleet, artifacts, command)


async def start_cycle(services: TermServices, command: StartCycle) -> CommandResult:
    """See `cycle_lifecycle`."""
    fleet, reach = services.fleet_view, services.reach
    return await cycle_lifecycle.start_cycle(services.term, fleet, reach, command)


async def plan_cycle(services: TermServices, command: PlanCycle) -> CommandResult:
    """See `cycle_lifecycle`."""
    return await cycle_lifecycle.plan_cycle(services.fleet_view, command)


async def predicted_extension(services: TermServices, command: ExtendCycle) -> CommandResult:
    """See `cycle_lifecycle`."""
    state, machines = services.term.state, services.machines
    return await cycle_lifecycle.predicted_extension(state, machines, command)


async def switch_branch(services: TermServices, command: SwitchBranch) -> CommandResult:
    """See `branch_commands`."""
    artifacts = services.reach.artifact_cache
    return await branch_commands.switch_branch(services.term, artifacts, command)
