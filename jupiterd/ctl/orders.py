"""A command to the daemon: its checks, the downloads before it, and the output of a dry run.

Owns the order of these steps. Doesn't call the daemon itself (`calls`), or know what a command
means.
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
"""Seconds for the daemon's checks, in which a generator may have to answer a prompt."""


PredictedLines = Callable[[Mapping[str, Any]], Sequence[str]]


def order(
    state_dir: Path,
    command: DaemonCommand,
    timeout_s: float | None = None,
    predicted: PredictedLines = lambda _: (),
    fetches: "Fetches | None" = None,
) -> Document:
    """Have the daemon execute a command; return its result.

    With --dry-run, the daemon only makes its checks; this prints what would be ordered, and ends
    the jupiterctl command.

    predicted: turns the daemon's prediction of a dry run into further lines
    fetches: models that are downloaded after the checks and before the command
    """
    invocation = _invocation()
    if fetches or invocation.is_dry_run:
        to_fetch = fetches.folders if fetches else ()
        answer = _check(state_dir, command, to_fetch)
        if not invocation.is_dry_run:
            _check_that_it_may_begin(answer)
        if fetches:
            fetches.check_room(state_dir)
        if fetches and fetches.bring_tokenizers():  # the tokenizer may not fit the data
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
    """Have the daemon make the checks of a command; return its answer.

    The answer's `foretold` is the prediction, and `run` the id of the run that the command would
    change; both may be missing.

    to_fetch: folders whose models will be complete when the command is sent

    Raises:
        JupiterError: the error with which the daemon would refuse the command.
    """
    from jupiterd.errors import UsageError
    from jupiterd.protocol.commands.check_commands import TryCommand

    try:
        arguments = command.to_plain()
        tries = TryCommand(verb=command.VERB, arguments=arguments, to_fetch=tuple(to_fetch))
        return ordered(state_dir, tries, CHECKING_S)
    except UsageError as error:
        if error.message != "unknown command dry_run":
            raise  # an older daemon can't check without executing
        ask(state_dir, "status")
        return {}


def _check_that_it_may_begin(answer: Mapping[str, Any]) -> None:
    """Raise ConflictError where something hinders just now: nothing is downloaded for it then."""
    from jupiterd.errors import ConflictError
    from jupiterd.protocol.commands.train_commands import REFUSED_NOW

    if refused := (answer.get("foretold") or {}).get(REFUSED_NOW):
        raise ConflictError(str(refused["message"]), str(refused["hint"]))


def _named(command: DaemonCommand, run: object) -> Mapping[str, object]:
    """Return a command's fields; a run that the user didn't name is filled in from `run`."""
    noun, arguments = command.VERB.partition(".")[0], command.to_plain()
    return arguments if not run or arguments.get(noun) else {**arguments, noun: short(str(run))}


def _invocation() -> "Invocation":
    """Return the global options of the running command; the defaults outside of a command."""
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
