"""Ending alarms that people have seen: the commands that do it.

Owns their checks and what they record; they run at the leader. Which alarms there are, the machine
says that was asked: some only it can see. Doesn't know what is raised (`alert_watch`), or who is
told.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from jupiterd.cluster.facts.dismissal_fact import AlarmDismissed
from jupiterd.cluster.facts.lifecycle_facts import FailureDismissed
from jupiterd.cluster.health.alert_news import FAILED
from jupiterd.cluster.health.alerts import TABLE as ALERTS
from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.health.dismissible import LASTING
from jupiterd.cluster.health.health import TABLE, HealthWarning
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.values.bounds import edit_after
from jupiterd.cluster.values.run_names import Named, meant
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import CycleId, NodeId, short
from jupiterd.protocol.commands.alarm_commands import DismissAlarms, DismissFailure, NoteAlarmsOver
from jupiterd.protocol.commands.command import PlainMap
from jupiterd.protocol.commands.requested_command import RequestedCommand

log = logging.getLogger(__name__)

MAX_ALARMS: Final = 256
MAX_CHARACTERS: Final = 400
"""Of an alarm's key, cause and title, and of a name by which people mean it."""

Row = Mapping[str, str]


async def dismiss(term: Term, machines: Machines, command: DismissFailure) -> dict[str, Any]:
    """End the alarm about a cycle, a run or a data set that failed, or all such alarms.

    It stays failed, and is told of again if it goes on and fails once more.

    Raises:
        NotFoundError: nothing failed that nobody has seen, or not that one.
        UsageError: several ids begin so.
    """
    wanted, failed = command.cycle or "", _unseen(term.state)
    if not failed:
        raise NotFoundError("there is no alarm about anything that failed", "jupiterctl status")
    named = [Named(each, cycle.label, [each]) for each, cycle in failed.items()]
    found = meant(named, wanted) if wanted else list(failed)
    if not found:
        raise NotFoundError(f"nothing that failed is called {wanted}", "jupiterctl status")
    asked_at = _asked_at(term, command)
    await term.record(*(FailureDismissed(each, asked_at) for each in found))
    for each in found:
        _log(machines, asked_at, {"cycle": each, "what": failed[each].label})
    return {"dismissed": [{"id": each, "name": failed[each].label} for each in found]}


class Alarms(Protocol):
    """What this machine has told of by now, and what people have dismissed."""

    @property
    def raised(self) -> Sequence[Alert]:
        """Return what is told of."""
        ...

    def key(self, alarm: HealthWarning | Alert) -> str:
        """Return by which key people mean it."""
        ...

    def is_dismissed(self, alarm: HealthWarning | Alert) -> bool:
        """Say whether somebody has ended it."""
        ...


@dataclass(frozen=True)
class AlarmView:
    """What this machine sees just now."""

    alarms: Callable[[], Alarms]
    state: Callable[[], State]
    health: Callable[[], Sequence[HealthWarning]]
    """Returns what is wrong, dismissed or not."""


def with_alarms(view: AlarmView, command: DismissAlarms) -> DismissAlarms:
    """Add what people mean by the names that they gave, as this machine sees it.

    Without a name that is everything that has happened; what lasts they name. Of several, those
    are passed over that a program named by their keys, and that have ended since it saw them.

    Raises:
        NotFoundError: there is no such alarm.
        UsageError: it can't be dismissed.
    """
    names = [name[:MAX_CHARACTERS] for name in command.names]
    alarms = view.alarms()
    shown = [alarm for alarm in view.health() if not alarms.is_dismissed(alarm)]
    all_shown = [*shown, *(alarm for alarm in alarms.raised if alarm.code not in TABLE)]
    if not names:
        found = [alarm for alarm in all_shown if _cause(alarm)]
        if not found:
            raise NotFoundError("there is no alarm about anything that happened", _hint(all_shown))
    else:
        keys = {alarms.key(alarm) for alarm in all_shown}
        left = [name for name in names if name in keys or not _is_key(name)]
        found = [alarm for name in left or names for alarm in _meant(view, all_shown, name)]
    rows = {alarms.key(alarm): _row(view, alarm) for alarm in found}
    return replace(command, alarms=tuple(rows.values())[:MAX_ALARMS])


def _is_key(name: str) -> bool:
    code, colon, _ = name.partition(":")
    return bool(colon) and (code in TABLE or code in ALERTS)


def _meant(
    view: AlarmView, shown: Sequence[HealthWarning | Alert], name: str
) -> list[HealthWarning | Alert]:
    state = view.state()
    names = {short(member): sanitized_text(fact.name) for member, fact in state.members.items()}
    runs = {short(cycle): each.label for cycle, each in state.cycles.items()}

    def is_meant(alarm: HealthWarning | Alert) -> bool:
        subject = alarm.about.partition("/")[0]
        called = names.get(short(subject)) or runs.get(short(subject)) or ""
        key = view.alarms().key(alarm)
        return name in (alarm.code, key, called) or (
            len(name) >= len(short(subject)) > 0 and subject.startswith(name)
        )

    found = [alarm for alarm in shown if is_meant(alarm)]
    if not found:
        raise NotFoundError(f"no alarm is called {name}, nor is about it", _hint(shown))
    if lasting := next((alarm for alarm in found if alarm.code in LASTING), None):
        raise UsageError(
            f"{lasting.code} can't be dismissed: it ends with what it says", lasting.hint
        )
    return found


def _hint(shown: Sequence[HealthWarning | Alert]) -> str:
    codes = dict.fromkeys(alarm.code for alarm in shown if alarm.code not in LASTING)
    if not codes:
        return "jupiterctl status"
    return f"name what lasts, and it stays silent until it is over: {', '.join(codes)}"


def _cause(alarm: HealthWarning | Alert) -> str:
    return alarm.cause if isinstance(alarm, Alert) else ""


def _row(view: AlarmView, alarm: HealthWarning | Alert) -> Row:
    run = CycleId(alarm.about.partition("/")[0])
    cycle = view.state().cycles.get(run)
    is_failure = cycle is not None and cycle.failed is not None and _cause(alarm) == FAILED
    return {
        "key": view.alarms().key(alarm),
        "cause": _cause(alarm),
        "code": alarm.code,
        "title": alarm.title[:MAX_CHARACTERS],  # others have a hand in it
        "cycle": run if is_failure else "",
    }


async def dismiss_alarms(term: Term, machines: Machines, command: DismissAlarms) -> dict[str, Any]:
    """End the alarms that these are; each is told again where its cause comes anew.

    Raises:
        UsageError: they aren't alarms, or nobody may dismiss them.
    """
    rows = [_read(row) for row in command.alarms or ()]
    if not 0 < len(rows) <= MAX_ALARMS:
        raise UsageError(f"expected 1 to {MAX_ALARMS} alarms", "jupiterctl dismiss --help")
    asked_at, unseen = _asked_at(term, command), _unseen(term.state)
    state = term.state
    await term.record(*(_fact(state, row, asked_at, unseen) for row in rows))
    for row in rows:
        _log(machines, asked_at, {"code": row["code"], "what": row["title"]})
    return {"dismissed": [{key: row[key] for key in ("key", "code", "title")} for row in rows]}


def _read(alarm: PlainMap) -> Row:
    read = {key: str(alarm.get(key) or "") for key in ("key", "cause", "code", "title", "cycle")}
    if read["key"].partition(":")[0] in LASTING or not read["key"]:
        raise UsageError(f"{read['key']} can't be dismissed", "jupiterctl status")
    if any(len(each) > MAX_CHARACTERS for each in read.values()):
        raise UsageError("an alarm's name has at most 400 characters", "jupiterctl status")
    return read


def _fact(
    state: State, row: Row, asked_at: NodeId, unseen: Mapping[CycleId, CycleState]
) -> AlarmDismissed | FailureDismissed:
    if (cycle := CycleId(row["cycle"])) in unseen:
        return FailureDismissed(cycle, asked_at)
    edit = edit_after(state.dismissals.edit(row["key"]))
    return AlarmDismissed(row["key"], row["cause"], is_over=False, edit=edit, node=asked_at)


async def note_over(term: Term, command: NoteAlarmsOver) -> dict[str, Any]:
    """Take note that alarms which were dismissed are over: the next of each is told again."""
    dismissals = term.state.dismissals
    over = [
        fact for key, fact in dismissals.in_force.items() if key in command.keys and not fact.cause
    ]
    if over:
        await term.record(
            *(
                AlarmDismissed(fact.key, "", is_over=True, edit=edit_after(fact.edit))
                for fact in over
            )
        )
    return {"over": [fact.key for fact in over]}


def _asked_at(term: Term, command: RequestedCommand) -> NodeId:
    return NodeId(command.asked_at or term.self_id)


def _log(machines: Machines, asked_at: NodeId, what: Mapping[str, str]) -> None:
    by = machines.names().get(asked_at, short(asked_at))
    log.info("alarm_dismissed", extra={**what, "by": by})


def _unseen(state: State) -> dict[CycleId, CycleState]:
    """Return what failed and nobody has seen."""
    return {
        name: each
        for name, each in state.cycles.items()
        if each.begun is not None
        and is_whole(each)
        and each.failed is not None
        and not each.lifecycle.is_dismissed
    }
