"""jupiterctl: the program that calls the local daemon.

Owns the list of commands, the exit status, and how errors are shown. Doesn't know what any command
does, and imports a command only when it runs.
"""

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from jupiterd.ctl.commands import LazyGroup
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.errors import ExitCode, JupiterError
from jupiterd.usage_errors import usage_error

COMMANDS = {
    "status": (
        "jupiterd.ctl.diagnose.status",
        "The cluster, its nodes and its cycle on one screen.",
    ),
    "node": ("jupiterd.ctl.node.group", "The machines: list, approve, remove, role."),
    "cluster": (
        "jupiterd.ctl.cluster.group",
        "Who belongs together: show, open, token, merge, branches, ...",
    ),
    "check": ("jupiterd.ctl.diagnose.check", "Measurements between machines: links, sync."),
    "launch": (
        "jupiterd.ctl.launch.group",
        "Run a script written for torchrun or MLX, as it is.",
    ),
    "domain": ("jupiterd.ctl.domain.group", "Knowledge domains: list, new, lint, schema."),
    "cycle": ("jupiterd.ctl.cycle.group", "Self-improvement: start, status, watch, explain, ..."),
    "gate": ("jupiterd.ctl.cycle.gate", "Verdicts on models: run computes one again."),
    "model": ("jupiterd.ctl.model.group", "What was trained: list, show, export."),
    "train": (
        "jupiterd.ctl.train.group",
        "Training without the cycle: start, status, watch, stop.",
    ),
    "data": ("jupiterd.ctl.data.group", "Text: prepare, list, why, export, purge, audit."),
    "monitor": ("jupiterd.ctl.diagnose.monitor", "Processor, memory and GPUs of each machine."),
    "events": (
        "jupiterd.ctl.diagnose.events",
        "What happened in the cluster, as this machine saw it.",
    ),
    "dismiss": ("jupiterd.ctl.diagnose.dismiss", "Ends alarms that you have seen."),
    "logs": (
        "jupiterd.ctl.diagnose.logs",
        "What the daemon and its workers say, also of one that ended.",
    ),
    "doctor": ("jupiterd.ctl.diagnose.doctor", "What may be wrong with this machine, and the fix."),
    "completion": ("jupiterd.ctl.completion", "Completion for bash, zsh and fish."),
    "version": ("jupiterd.ctl.version", "The version of this program."),
}
"""Name of a command -> (its module, one line of help)."""

EXIT_CODES = """\b
Exit codes:
  0 done, 1 failed, 2 wrong command line or file, 3 no daemon answers, 4 timed out,
  5 refused, 6 not found, 7 conflict, 8 unhealthy (status --check, doctor), 130 interrupted"""


COLLECT_AFTER = 100_000
"""New objects before Python collects garbage; it is high, as imports leave no garbage."""


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
def cli() -> None:
    """Command the Jupiter cluster that this machine belongs to.

    \b
    Examples:
      jupiterctl status
      jupiterctl cycle start --domain python --rounds 2 --size 1m --wait
      jupiterctl node list -o json
    """  # noqa: D301 - click's mark for lines that keep their ends


def run(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit status, also after an error."""
    invocation = Invocation()
    try:
        result = cli.main(
            list(arguments), prog_name="jupiterctl", standalone_mode=False, obj=invocation
        )
        sys.stdout.flush()
    except Exception as error:  # noqa: BLE001 - the program's outermost handler
        if "--debug" in arguments and not isinstance(error, click.ClickException):
            import traceback

            traceback.print_exc()
        return _report(error, invocation)
    return result if isinstance(result, int) else ExitCode.OK


def _report(error: Exception, invocation: Invocation) -> int:
    """Print the error, unless it is an abort or a closed pipe; return the exit status."""
    if isinstance(error, click.Abort):  # Ctrl-C, or a question answered with no
        return ExitCode.INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # such as `jupiterctl cycle`
        sys.stderr.write(f"{error.format_message()}\n")
        return ExitCode.USAGE
    if isinstance(error, BrokenPipeError):  # such as `jupiterctl status | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    known = _translated(error)
    Console.of(invocation).error(known)
    return known.exit_code


def _translated(error: Exception) -> JupiterError:
    if isinstance(error, JupiterError):
        return error
    if isinstance(error, click.ClickException):
        return usage_error(error, "jupiterctl")
    return JupiterError(
        f"unexpected {type(error).__name__}: {error}",
        "this is a mistake in Jupiter; run the command again with --debug and report what it shows",
    )


def main() -> NoReturn:
    """Run as a program."""
    gc.set_threshold(COLLECT_AFTER)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # pyright: ignore[reportAttributeAccessIssue]
    status = run(sys.argv[1:])
    gc.freeze()  # the exit then needs no garbage collection
    sys.exit(status)


if __name__ == "__main__":
    main()
