"""Every verb that people and programs may order, in one table.

Owns the table. Doesn't know how a command comes here, or what any of them does.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from jupiterd.daemon.commands import (
    alarm_commands,
    cycle_lifecycle,
    data_commands,
    dataset_removal,
    member_commands,
    promotion_commands,
    term_adapters,
    train_commands,
)
from jupiterd.daemon.commands.preparations import LocalPreparations
from jupiterd.daemon.commands.purge_source import purge_source
from jupiterd.daemon.commands.term_adapters import with_admissions, with_machines, with_term
from jupiterd.daemon.commands.verb import CommandResult, Verb, at_leader, local, prepared
from jupiterd.daemon.cycles import generator_trial
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.scripts import allreduce_check
from jupiterd.protocol.commands.alarm_commands import (
    DismissAlarms,
    DismissFailure,
    NoteAlarmsOver,
)
from jupiterd.protocol.commands.check_commands import (
    CheckAllreduce,
    CheckLinks,
    NoteFetch,
    TryGenerator,
)
from jupiterd.protocol.commands.cycle_commands import (
    ExtendCycle,
    PauseCycle,
    PlanCycle,
    PromoteModel,
    ResumeCycle,
    RollBackStudent,
    StartCycle,
    StopCycle,
    SwitchBranch,
)
from jupiterd.protocol.commands.data_commands import (
    PrepareData,
    PurgeSource,
    RemoveData,
    StopData,
)
from jupiterd.protocol.commands.member_commands import (
    ApproveNode,
    CloseCluster,
    HandOverLead,
    IssueToken,
    LeaveCluster,
    MergeCluster,
    OpenCluster,
    PinRole,
    RemoveNode,
    RenameCluster,
    TrustNode,
    WithdrawToken,
)
from jupiterd.protocol.commands.script_commands import (
    PrepareLaunch,
    ReportRefusedConnections,
    ShipFolder,
)
from jupiterd.protocol.commands.train_commands import ResumeTraining, StartTraining, StopTraining

HAND_OVER_S = 10.0
"""It is asked for in a hurry, and waits for no other command."""


@dataclass(frozen=True)
class CommandHandlers:
    """The handlers of commands that need parts of this daemon."""

    check_links: Callable[[CheckLinks], Awaitable[CommandResult]]
    note_fetch: Callable[[NoteFetch], Awaitable[CommandResult]]
    prepare_launch: Callable[[PrepareLaunch], Awaitable[CommandResult]]
    ship_folder: Callable[[ShipFolder], Awaitable[CommandResult]]
    note_refused_connections: Callable[[ReportRefusedConnections], Awaitable[CommandResult]]
    leave_cluster: Callable[[LeaveCluster], Awaitable[CommandResult]]
    hand_over: Callable[[HandOverLead], Awaitable[CommandResult]]
    merge_cluster: Callable[[Term, MergeCluster], Awaitable[CommandResult]]
    check_allreduce: Callable[[TermServices, CheckAllreduce], Awaitable[CommandResult]]
    try_generator: Callable[[TermServices, TryGenerator], Awaitable[CommandResult]]


def verb_table(handlers: CommandHandlers, preparations: LocalPreparations) -> Mapping[str, Verb]:
    """Return the table by the names of its verbs."""
    rows = (
        *_membership(handlers),
        *_alarms(preparations),
        *_data(preparations),
        *_training(preparations),
        *_cycles(preparations),
        *_checks(handlers),
    )
    return {row.name: row for row in rows}


def _membership(handlers: CommandHandlers) -> tuple[Verb, ...]:
    async def hand_over(_services: TermServices, command: HandOverLead) -> CommandResult:
        return await handlers.hand_over(command)

    return (
        at_leader(OpenCluster, with_admissions(member_commands.open_window)),
        at_leader(CloseCluster, with_term(member_commands.close_window)),
        at_leader(RenameCluster, with_term(member_commands.rename_cluster)),
        at_leader(IssueToken, with_term(member_commands.issue_token)),
        at_leader(WithdrawToken, with_term(member_commands.withdraw_token)),
        at_leader(ApproveNode, with_admissions(member_commands.approve_node)),
        at_leader(RemoveNode, with_machines(member_commands.remove_node)),
        at_leader(TrustNode, with_machines(member_commands.trust_node)),
        at_leader(PinRole, term_adapters.pin_role),
        at_leader(MergeCluster, with_term(handlers.merge_cluster)),
        local(LeaveCluster, handlers.leave_cluster),
        at_leader(HandOverLead, hand_over, longest_s=HAND_OVER_S),
    )


def _alarms(preparations: LocalPreparations) -> tuple[Verb, ...]:
    named = prepared(DismissAlarms, preparations.dismiss_alarms)
    return (
        at_leader(DismissFailure, with_machines(alarm_commands.dismiss)),
        at_leader(DismissAlarms, with_machines(alarm_commands.dismiss_alarms), named),
        at_leader(NoteAlarmsOver, with_term(alarm_commands.note_over)),
    )


def _data(preparations: LocalPreparations) -> tuple[Verb, ...]:
    noted = prepared(PrepareData, preparations.prepare_data, preparations.try_data)
    return (
        at_leader(PrepareData, with_term(data_commands.prepare_data), noted),
        at_leader(StopData, with_term(dataset_removal.stop_data)),
        at_leader(RemoveData, with_term(dataset_removal.remove_data)),
        at_leader(PurgeSource, with_term(purge_source)),
    )


def _training(preparations: LocalPreparations) -> tuple[Verb, ...]:
    brought = prepared(StartTraining, preparations.start_training, preparations.try_training)
    start, predict = term_adapters.start_training, term_adapters.predicted_training
    return (
        at_leader(StartTraining, start, brought, predict),
        at_leader(StopTraining, with_term(train_commands.stop_training)),
        at_leader(ResumeTraining, with_term(train_commands.resume_training)),
    )


def _cycles(preparations: LocalPreparations) -> tuple[Verb, ...]:
    brought = prepared(StartCycle, preparations.start_cycle, preparations.try_cycle)
    planned = prepared(PlanCycle, preparations.plan_cycle)
    paused = prepared(PauseCycle, preparations.pause_cycle)
    extend, predict = with_term(cycle_lifecycle.extend_cycle), term_adapters.predicted_extension
    return (
        at_leader(StartCycle, term_adapters.start_cycle, brought),
        at_leader(PlanCycle, term_adapters.plan_cycle, planned),
        at_leader(StopCycle, with_term(cycle_lifecycle.stop_cycle)),
        at_leader(PauseCycle, with_term(cycle_lifecycle.pause_cycle), paused),
        at_leader(ResumeCycle, with_term(cycle_lifecycle.resume_cycle)),
        at_leader(ExtendCycle, extend, forecast=predict),
        at_leader(RollBackStudent, with_term(promotion_commands.roll_back)),
        at_leader(PromoteModel, with_term(promotion_commands.promote)),
        at_leader(SwitchBranch, term_adapters.switch_branch),
    )


def _checks(handlers: CommandHandlers) -> tuple[Verb, ...]:
    check, attempt = handlers.check_allreduce, handlers.try_generator
    return (
        local(CheckLinks, handlers.check_links),
        at_leader(CheckAllreduce, check, longest_s=allreduce_check.LONGEST_S),
        at_leader(TryGenerator, attempt, longest_s=generator_trial.TOLD_AFTER_S),
        local(NoteFetch, handlers.note_fetch),
        local(PrepareLaunch, handlers.prepare_launch),
        local(ShipFolder, handlers.ship_folder),
        local(ReportRefusedConnections, handlers.note_refused_connections),
    )
