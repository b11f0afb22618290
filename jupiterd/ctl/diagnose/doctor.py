"""`jupiterctl doctor`: finds what may be wrong with this machine, and prints how to fix it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jupiterd.cluster.text.finding_lines import finding_lines
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.errors import (
    DaemonUnreachableError,
    ExitCode,
    JupiterError,
    NotFoundError,
    TimedOutError,
)

LIMIT_S = 120.0
"""Seconds for all checks: the import of torch may take half a minute on a busy machine."""


@click.command(cls=GlobalOptionsCommand)
@click.pass_obj
def command(invocation: Invocation) -> int:
    """Look for what may be wrong with this machine, and say how to mend it.

    The daemon looks, as the program that has to work: multicast, firewall, ports, the other nodes'
    versions and links, disk, clock, GPUs, torch and MLX. Without a daemon, jupiterd doctor does.
    Nothing is changed: fixes are printed, for you to run. The exit status is 8 where something
    fails.

    \b
    Examples:
      jupiterctl doctor
      jupiterctl doctor -o json | jq '.findings[] | select(.status == "fail")'
    """  # noqa: D301 - click's mark for lines that keep their ends
    console = Console.of(invocation)
    document = _document(invocation.state_dir, console)
    console.show(document, lambda: finding_lines(document))
    return ExitCode.OK if document["healthy"] else ExitCode.UNHEALTHY


def _document(state_dir: Path, console: Console) -> Mapping[str, Any]:
    from jupiterd.ctl.calls import ask_over_grpc

    try:
        return ask_over_grpc(state_dir, "doctor", LIMIT_S)
    except DaemonUnreachableError as error:
        console.notice(f"{error.message}; looking without it")
    except NotFoundError:
        console.notice("the jupiterd that runs is older than this; looking without it")
    return looked_without_daemon(state_dir)


def looked_without_daemon(state_dir: Path) -> Mapping[str, Any]:
    """Return the document of `jupiterd doctor`, run as a separate process.

    Raises:
        TimedOutError: it doesn't end within LIMIT_S.
        JupiterError: its output isn't a document.
    """
    program = [sys.executable, "-m", "jupiterd.daemon.app.main", "--state-dir", str(state_dir)]
    try:
        done = subprocess.run(
            [*program, "doctor", "-o", "json"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired as error:
        raise TimedOutError(f"jupiterd doctor took longer than {LIMIT_S:.0f} s") from error
    except ValueError as error:
        raise JupiterError(
            "jupiterd doctor gave no answer", f"run it: jupiterd --state-dir {state_dir} doctor"
        ) from error
