"""How the table of verbs is put together with the parts of a daemon that carry them out.

Owns which part does which. Doesn't know what any verb does. It is imported at the first command:
what carries all of them out takes 3 MB, of which an idle daemon needs none.
"""

import asyncio
from collections.abc import Mapping
from functools import partial

from jupiterd.cluster.health.health import judge
from jupiterd.daemon.app.command_wiring import Ordered
from jupiterd.daemon.catalog.model_import import ModelImport
from jupiterd.daemon.commands.alarm_commands import AlarmView
from jupiterd.daemon.commands.cluster_leave import Leaving, leave
from jupiterd.daemon.commands.cycle_lifecycle import running_cycle
from jupiterd.daemon.commands.domain_questions import bring_questions
from jupiterd.daemon.commands.preparations import LocalPreparations, Machine
from jupiterd.daemon.commands.verb import CommandResult, Verb
from jupiterd.daemon.commands.verb_table import CommandHandlers, verb_table
from jupiterd.daemon.cycles.generator_trial import try_generator
from jupiterd.daemon.executor.named_paths import named_paths
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.daemon.scripts.allreduce_check import AllreduceCheck
from jupiterd.daemon.scripts.script_placement import note_refused_connections
from jupiterd.daemon.scripts.shipping import ship_folder
from jupiterd.protocol.commands.check_commands import CheckAllreduce, NoteFetch, TryGenerator
from jupiterd.protocol.commands.command import Command
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.member_commands import HandOverLead, LeaveCluster


def table_of(daemon: Ordered) -> Mapping[str, Verb]:
    """Return every verb with what of a daemon carries it out."""
    preparations = LocalPreparations(machine_of(daemon), daemon.file_policy, alarms_of(daemon))
    return verb_table(_handlers_of(daemon), preparations)


def alarms_of(daemon: Ordered) -> AlarmView:
    """Return what a daemon sees of alarms."""
    return AlarmView(
        alarms=lambda: daemon.observers.alerts,
        state=lambda: daemon.replica.state,
        health=lambda: list(judge(daemon.observers.health.cluster_view())),
    )


def _handlers_of(daemon: Ordered) -> CommandHandlers:
    checks, fetches = AllreduceCheck(), daemon.hub_fetches

    async def note_fetch(command: NoteFetch) -> CommandResult:
        fetches.note(command, now_s())
        return {}

    async def leave_cluster(command: LeaveCluster) -> CommandResult:
        name, joining = daemon.settings.name, daemon.handshake.joining
        here = Leaving(daemon.identity, name, daemon.replica, joining, daemon.summary)
        return await leave(here, command)

    async def hand_over(_command: HandOverLead) -> CommandResult:
        daemon.hand_over.begin()
        return {}

    async def check_allreduce(services: TermServices, command: CheckAllreduce) -> CommandResult:
        placement, calls, asked = services.placement, services.calls, command.to_plain()
        return await checks.run(placement, calls, services.connectivity, asked)

    async def attempt(services: TermServices, command: TryGenerator) -> CommandResult:
        return await try_generator(services.placement, services.calls, command.to_plain())

    return CommandHandlers(
        check_links=daemon.link_measurement.check,
        note_fetch=note_fetch,
        prepare_launch=daemon.script_placement.prepare,
        ship_folder=partial(ship_folder, daemon.shipped, daemon.peers),
        note_refused_connections=partial(
            note_refused_connections, daemon.worker_runner.refused_connections
        ),
        leave_cluster=leave_cluster,
        hand_over=hand_over,
        merge_cluster=daemon.cluster_merge.merge,
        check_allreduce=check_allreduce,
        try_generator=attempt,
    )


def machine_of(daemon: Ordered) -> Machine:
    """Return what a daemon's machine does for commands that are given on it."""
    own = daemon.identity.node_id
    brought = ModelImport(own, daemon.artifact_cache.store, daemon.state_dir.spool)

    async def note_paths(command: Command) -> None:
        paths = await asyncio.to_thread(named_paths, command.to_plain())
        await asyncio.to_thread(daemon.worker_runner.offered.ask, paths)

    async def bring(command: StartCycle) -> StartCycle:
        store, spool = daemon.artifact_cache.store, daemon.state_dir.spool
        return await brought.bring_models(await bring_questions(store, spool, command))

    attempt = partial(_try_models, daemon)
    return Machine(own, note_paths, brought.bring_weights, bring, attempt)


async def _try_models(daemon: Ordered, command: StartCycle) -> None:
    """See that the models of others can be used, unless no cycle can begin anyway."""
    if running_cycle(daemon.replica.state.cycles.values()) is not None:
        return
    for model, folder in (
        (command.generator, command.generator_folder),
        (command.judge, command.judge_folder),
    ):
        if model and folder is None:
            await daemon.commands.give(TryGenerator(generator=model))
