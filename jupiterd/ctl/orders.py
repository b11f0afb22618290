"""A command to the daemon: what it checks first, what is fetched first, and what a dry run shows.

Owns that order. Doesn't know how the daemon is called (`calls`), or what a command means.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupiterd.ctl.calls import ask, ordered
from jupiterd.ids import short
from jupiterd.protocol.commands.command import Command as DaemonCommand
from jupiterd.protocol.local_query import Document

if TYPE_CHECKING:
    from jupiterd.ctl.hub.fetches import Fetches
    from jupiterd.ctl.invocation import Invocation

CHECKING_S = 120.0
"""Seconds that a dry run's checks may take: a generator may have to answer one prompt."""


PredictedLines = Callable[[Mapping[str, Any]], Sequence[str]]


def order(
    state_dir: Path,
    command: DaemonCommand,
    timeout_s: float | None = None,
    predicted: PredictedLines = lambda _: (),
    fetches: "Fetches | None" = None,
) -> Document:
    """Have the daemon carry out a command; return its result.

    With --dry-run the daemon makes all the checks, what would be ordered is shown, and the
    jupiterctl command ends.

    predicted: returns further lines from what the daemon predicts in a dry run
    fetches: what is fetched first, once the daemon has made its checks
    """
    invocation = _invocation()
    if fetches or invocation.is_dry_run:
        to_fetch = fetches.folders if fetches else ()
        answer = _check(state_dir, command, to_fetch)
        if fetches:
            fetches.check_room(state_dir)
        if fetches and fetches.bring_tokenizers():  # data that another one has cut won't do
            answer = _check(state_dir, command, to_fetch)
        if invocation.is_dry_run:
            lines = [
                *(fetches.lines() if fetches else ()),
                *predicted(answer.get("foretold") or {}),
            ]
            _end_dry_run(invocation, command.VERB, _named(command, answer.get("run")), lines)
    if fetches:
        _fetch(invocation, state_dir, fetches)
    return ordered(state_dir, command, timeout_s)


def _check(state_dir: Path, command: DaemonCommand, to_fetch: Sequence[str]) -> Mapping[str, Any]:
    """Have the daemon make all the checks of a command; return its answer.

    The answer's `foretold` is the predicted result, and `run` what the command would steer; each
    may be missing.

    to_fetch: the folders that will hold their models by the time the command is sent

    Raises:
        JupiterError: what it would refuse it with.
    """
    from jupiterd.errors import UsageError
    from jupiterd.protocol.commands.check_commands import TryCommand

    try:
        arguments = command.to_plain()
        tries = TryCommand(verb=command.VERB, arguments=arguments, to_fetch=tuple(to_fetch))
        return ordered(state_dir, tries, CHECKING_S)
    except UsageError as error:
        if error.message != "unknown command dry_run":
            raise  # a daemon of before makes no checks without doing it
        ask(state_dir, "status")
        return {}


def _named(command: DaemonCommand, run: object) -> Mapping[str, object]:
    """Return a command's fields in which the run has its id that was left for the daemon."""
    noun, arguments = command.VERB.partition(".")[0], command.to_plain()
    return arguments if not run or arguments.get(noun) else {**arguments, noun: short(str(run))}


def _invocation() -> "Invocation":
    """Return the global options of the command that runs; the usual ones outside of a command."""
    import click

    from jupiterd.ctl.invocation import Invocation

    context = click.get_current_context(silent=True)
    found = context.find_object(Invocation) if context else None
    return found or Invocation()


def _fetch(invocation: "Invocation", state_dir: Path, fetches: "Fetches") -> None:
    from jupiterd.ctl.hub.fetch_progress import FetchProgress
    from jupiterd.ctl.output.console import Console

    fetches.run(FetchProgress(Console.of(invocation), state_dir))


def _end_dry_run(
    invocation: "Invocation", verb: str, arguments: Mapping[str, object], lines: Sequence[str]
) -> None:
    import click

    from jupiterd.ctl.output.console import Console
    from jupiterd.ctl.output.dry_run_lines import dry_run_lines
    from jupiterd.document_schema import SCHEMA

    document: Document = {
        "schema": SCHEMA,
        "dry_run": True,
        "verb": verb,
        "arguments": dict(arguments),
    }
    if lines:
        document["foretold"] = lines
    Console.of(invocation).show(document, lambda: dry_run_lines(document))
    click.get_current_context().exit()
