"""The changes that people can make to a cycle, as actions.

Pure. Owns the commands and the texts of the questions. Doesn't know which cycle is chosen, or how.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.actions.action import Action
from jupiterd.cluster.health.dismissible import LASTING
from jupiterd.formats import counted, plain
from jupiterd.ids import short

Cycle = Mapping[str, Any]


def pause(cycle: Cycle) -> Action:
    """Return what pauses a cycle."""
    return _action(cycle, "pause", "Pause", ("Its machines are free until it is resumed.",))


def resume(cycle: Cycle, *more: str) -> Action:
    """Return what lets a cycle go on; `more` are further options of the command."""
    return _action(cycle, "resume", "Go on with", ("It goes on from what it has made.",), more)


def stop(cycle: Cycle) -> Action:
    """Return what stops a cycle."""
    return _action(cycle, "stop", "Stop", ("What it has made stays; it can be resumed.",))


def rollback(cycle: Cycle) -> Action:
    """Return what withdraws a cycle's newest student, as a generator or as the promoted model."""
    consequence = (
        "Its newest student is out of force from the next round on; who was before comes back."
    )
    return _action(cycle, "rollback", "Roll back", (consequence,))


def extend(cycle: Cycle) -> Action:
    """Return what gives a cycle another round."""
    consequence = (
        "One that has ended goes on from its last model; looks that were spent stay spent."
    )
    return _action(cycle, "extend", "Extend", (consequence,), ("--rounds", "1"))


def dismiss(cycle: Cycle) -> Action:
    """Return what ends the alarm about a cycle that failed."""
    return _action(cycle, "dismiss", "Dismiss the alarm about", ("The cycle stays as it is.",))


def dismiss_all(health: Sequence[Mapping[str, Any]]) -> Action | None:
    """Return what ends the alarms that health shows; None where it shows none that can end so."""
    shown = [line for line in health if line.get("code") not in LASTING and line.get("key")]
    if not shown:
        return None
    return Action(
        ("dismiss", *(str(line["key"]) for line in shown)),
        "Dismiss alarms",
        f"Have you seen {'this' if len(shown) == 1 else f'these {len(shown)}'}?",
        (*(plain(line.get("title")) for line in shown), "Each comes back with a new cause."),
    )


def start(
    domain: str, size: str, rounds: int, generator: str = "", *, is_interactive: bool = False
) -> Action:
    """Return what starts a cycle."""
    command = ["cycle", "start", "--domain", domain, "--size", size, "--rounds", str(rounds)]
    command += ["--generator", generator] if generator else []
    command += ["--interactive"] if is_interactive else []
    return Action(
        tuple(command),
        "Start a cycle",
        f"Start a cycle for {plain(domain)}, {plain(size)}, {counted(rounds, 'round')}?",
        ("New machines are let in without asking only until the first cycle begins.",),
    )


def _action(
    cycle: Cycle, verb: str, words: str, consequence: tuple[str, ...], more: tuple[str, ...] = ()
) -> Action:
    digits = short(str(cycle.get("id")))
    return Action(
        ("cycle", verb, digits, *more),
        f"{words} a cycle",
        f"{words} cycle {digits} of {plain(cycle.get('domain'))}?",
        consequence,
    )
