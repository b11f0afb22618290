"""Every verb that people and programs may order, in one table.

Owns the table. Doesn't know how a command comes here, or what any of them does.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jupiterd.daemon.commands import (
    alarm_commands,
    branch_commands,
    cycle_lifecycle,
    data_commands,
    dataset_removal,
    member_commands,
    promotion_commands,
    train_commands,
)
from jupiterd.daemon.commands.preparations import Preparations
from jupiterd.daemon.commands.purge_source import purge_source
from jupiterd.daemon.commands.verb import Answer, Verb, at_leader, local, prepared
from jupiterd.daemon.cycles import generator_trial
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
from jupiterd.protocol.commands.script_commands import NoteKnocks, PrepareLaunch, ShipFolder
from jupiterd.protocol.commands.train_commands import ResumeTraining, StartTraining, StopTraining

if TYPE_CHECKING:
    from jupiterd.daemon.leader.leading import Leading

HAND_OVER_S = 10.0
"""It is asked for in a hurry, and waits for no other command."""


@dataclass(frozen=True)
class Doers:
    """Those who carry out what needs parts of this daemon."""

    check_links: Callable[[CheckLinks], Awaitable[Answer]]
    note_fetch: Callable[[NoteFetch], Awaitable[Answer]]
    prepare_launch: Callable[[PrepareLaunch], Awaitable[Answer]]
    ship_folder: Callable[[ShipFolder], Awaitable[Answer]]
    note_knocks: Callable[[NoteKnocks], Awaitable[Answer]]
    leave_cluster: Callable[[LeaveCluster], Awaitable[Answer]]
    hand_over: "Callable[[Leading, HandOverLead], Awaitable[Answer]]"
    merge_cluster: "Callable[[Leading, MergeCluster], Awaitable[Answer]]"
    check_allreduce: "Callable[[Leading, CheckAllreduce], Awaitable[Answer]]"
    try_generator: "Callable[[Leading, TryGenerator], Awaitable[Answer]]"


def verb_table(doers: Doers, before: Preparations) -> Mapping[str, Verb]:
    """Return the table by the names of its verbs."""
    rows = (
        *_membership(doers),
        *_alarms(before),
        *_data(before),
        *_training(before),
        *_cycles(before),
        *_checks(doers),
    )
    return {row.name: row for row in rows}


def _membership(doers: Doers) -> tuple[Verb, ...]:
    return (
        at_leader(OpenCluster, member_commands.open_window),
        at_leader(CloseCluster, member_commands.close_window),
        at_leader(RenameCluster, member_commands.rename_cluster),
        at_leader(IssueToken, member_commands.issue_token),
        at_leader(WithdrawToken, member_commands.withdraw_token),
        at_leader(ApproveNode, member_commands.approve_node),
        at_leader(RemoveNode, member_commands.remove_node),
        at_leader(TrustNode, member_commands.trust_node),
        at_leader(PinRole, member_commands.pin_role),
        at_leader(MergeCluster, doers.merge_cluster),
        local(LeaveCluster, doers.leave_cluster),
        at_leader(HandOverLead, doers.hand_over, longest_s=HAND_OVER_S),
    )


def _alarms(before: Preparations) -> tuple[Verb, ...]:
    named = prepared(DismissAlarms, before.dismiss_alarms)
    return (
        at_leader(DismissFailure, alarm_commands.dismiss),
        at_leader(DismissAlarms, alarm_commands.dismiss_alarms, named),
        at_leader(NoteAlarmsOver, alarm_commands.note_over),
    )


def _data(before: Preparations) -> tuple[Verb, ...]:
    noted = prepared(PrepareData, before.prepare_data, before.try_data)
    return (
        at_leader(PrepareData, data_commands.prepare_data, noted),
        at_leader(StopData, dataset_removal.stop_data),
        at_leader(RemoveData, dataset_removal.remove_data),
        at_leader(PurgeSource, purge_source),
    )


def _training(before: Preparations) -> tuple[Verb, ...]:
    brought = prepared(StartTraining, before.start_training, before.try_training)
    start, foretell = train_commands.start_training, train_commands.foretold_training
    return (
        at_leader(StartTraining, start, brought, foretell),
        at_leader(StopTraining, train_commands.stop_training),
        at_leader(ResumeTraining, train_commands.resume_training),
    )


def _cycles(before: Preparations) -> tuple[Verb, ...]:
    brought = prepared(StartCycle, before.start_cycle, before.try_cycle)
    extend, foretell = cycle_lifecycle.extend_cycle, cycle_lifecycle.foretold_extension
    return (
        at_leader(StartCycle, cycle_lifecycle.start_cycle, brought),
        at_leader(PlanCycle, cycle_lifecycle.plan_cycle, prepared(PlanCycle, before.plan_cycle)),
        at_leader(StopCycle, cycle_lifecycle.stop_cycle),
        at_leader(
            PauseCycle, cycle_lifecycle.pause_cycle, prepared(PauseCycle, before.pause_cycle)
        ),
        at_leader(ResumeCycle, cycle_lifecycle.resume_cycle),
        at_leader(ExtendCycle, extend, forecast=foretell),
        at_leader(RollBackStudent, promotion_commands.roll_back),
        at_leader(PromoteModel, promotion_commands.promote),
        at_leader(SwitchBranch, branch_commands.switch_line),
    )


def _checks(doers: Doers) -> tuple[Verb, ...]:
    check, attempt = doers.check_allreduce, doers.try_generator
    return (
        local(CheckLinks, doers.check_links),
        at_leader(CheckAllreduce, check, longest_s=allreduce_check.LONGEST_S),
        at_leader(TryGenerator, attempt, longest_s=generator_trial.TOLD_AFTER_S),
        local(NoteFetch, doers.note_fetch),
        local(PrepareLaunch, doers.prepare_launch),
        local(ShipFolder, doers.ship_folder),
        local(NoteKnocks, doers.note_knocks),
    )
