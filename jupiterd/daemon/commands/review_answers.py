"""What people answer at the end of a phase: go on, with another setting, or do it again.

Owns the checks and the facts that are recorded with the command to go on. Pure but for the reading
of domain files. Doesn't know who asked, or how a cycle is conducted.
"""

from collections.abc import Iterator, Mapping

from jupiterd.cluster.facts.facts import CycleStarted, Fact
from jupiterd.cluster.facts.phase_facts import PhaseApproved, PhaseRedone, SettingChanged
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.boundary import OF_DATA, REDOABLE, with_those_behind
from jupiterd.daemon.catalog.pause_facts import (
    INTERACTIVE,
    current_round,
    done_in,
    is_interactive,
    place_of,
    redoable,
    waiting_after,
)
from jupiterd.daemon.cycles.speculation_discard import anew
from jupiterd.errors import ConflictError, UsageError
from jupiterd.ids import short
from jupiterd.protocol.commands.cycle_commands import ResumeCycle

LAST = "last"
"""Stands for the phase that ended last, where one is done again."""


def answers(cycle: CycleState, begun: CycleStarted, command: ResumeCycle) -> list[Fact]:
    """Return what is recorded of an answer.

    Args:
        cycle: where it stands; it isn't running.
        begun: how it was asked for.
        command: what people have answered; `redo` is the name of a phase, or LAST.

    Raises:
        ConflictError: it is too late for that.
        InvalidDomainError: a setting can't have that value.
        UsageError: there is no such phase or setting.
    """
    again = _phase_to_redo(cycle, begun, command.redo) if command.redo else None
    settings = {str(key): str(text) for key, text in (command.settings or {}).items()}
    changed: list[Fact] = list(_changes(cycle, begun, settings, again))
    if command.auto:
        edit = cycle.steering.setting_edit(INTERACTIVE, 1) + 1
        changed.append(SettingChanged(begun.cycle, INTERACTIVE, "false", 1, edit))
    ahead = current_round(cycle) + 1
    if any(_changes_generating(fact, ahead) for fact in changed):
        changed += anew(cycle, begun.cycle, ahead)
    if again is not None:
        number = current_round(cycle)
        phases = tuple(map(str, with_those_behind(again)))
        redo = cycle.steering.next_redo(number)
        return [*changed, PhaseRedone(begun.cycle, number, str(again), phases, redo)]
    return [*changed, *_approval(cycle, begun)]


def _changes_generating(fact: Fact, round_number: int) -> bool:
    if not isinstance(fact, SettingChanged):
        return False
    return fact.from_round == round_number and fact.setting.startswith("generation.")


def _approval(cycle: CycleState, begun: CycleStarted) -> Iterator[PhaseApproved]:
    """Return that the phase which ended last may be gone on from, where that is asked."""
    place = place_of(cycle)
    if place is None or cycle.wanted_reason != waiting_after(place):
        return  # it was paused in the middle of a phase
    if is_interactive(cycle, begun):
        number, phase = place
        redo = cycle.steering.redo_of(number, str(phase))
        yield PhaseApproved(begun.cycle, number, str(phase), redo)


def _phase_to_redo(cycle: CycleState, begun: CycleStarted, wanted: str) -> Phase:
    possible, number = redoable(cycle), current_round(cycle)
    named = short(begun.cycle)
    if wanted == Phase.TRAIN:
        raise UsageError(
            "train isn't done again: the same data and weights would come to the same model",
            "jupiterctl cycle start begins another cycle; the domain's training: has its settings",
        )
    if wanted != LAST and wanted not in REDOABLE:
        raise UsageError(f"{wanted} isn't done again", f"one of {', '.join(REDOABLE)} is")
    if not possible:
        raise ConflictError(
            f"nothing of round {number} can be done again: it has no results yet, or is trained on",
            f"jupiterctl cycle resume {named} goes on",
        )
    if wanted == LAST:
        return possible[-1]
    if wanted not in possible:
        is_late = wanted in OF_DATA and wanted in done_in(cycle, number)
        why = "was trained on" if is_late else "has no results yet"
        raise ConflictError(
            f"{wanted} of round {number} {why}", f"jupiterctl cycle resume {named} goes on"
        )
    return Phase(wanted)


def _changes(
    cycle: CycleState, begun: CycleStarted, settings: Mapping[str, str], again: Phase | None
) -> Iterator[SettingChanged]:
    if not settings:
        return
    from jupiterd.cycle.domain.changed_settings import phase_of, with_changes  # 8 MB, idle or not
    from jupiterd.cycle.domain.domain import parse_domain

    domain = parse_domain(begun.domain_yaml, f"{begun.domain}.yaml")
    for setting, text in settings.items():
        number = _first_round(cycle, begun, setting, phase_of(setting), again)
        with_changes(domain, {**cycle.steering.settings(number), **settings})
        edit = cycle.steering.setting_edit(setting, number) + 1
        yield SettingChanged(begun.cycle, setting, text, number, edit)


def _first_round(
    cycle: CycleState, begun: CycleStarted, setting: str, phase: Phase, again: Phase | None
) -> int:
    """Return the round from which a change counts: its phase mustn't have begun."""
    number = current_round(cycle)
    left = done_in(cycle, number) - set(() if again is None else with_those_behind(again))
    if not any(each in left for each in with_those_behind(phase)):
        return number
    if number >= cycle.rounds_wanted:
        raise ConflictError(
            f"{setting} decides how the cycle goes from {phase} on, which is over in round "
            f"{number}, the last",
            f"jupiterctl cycle resume {short(begun.cycle)} --redo {phase} --set ...",
        )
    return number + 1
