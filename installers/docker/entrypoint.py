#!/opt/share/jupiter/environment/bin/python
"""What a container of Jupiter does with the command that it is given.

    jupiterd ...        is the container's process
    jupiterctl ...      is run beside the daemon that answers on the state volume; where none does,
    jupiter-tui ...     one is started first, and told to stop when the command has ended
    anything else       is run as it is, such as nvidia-smi

A container that was started for one command ends with it, so whatever only orders work (`train
start`) is waited for there, as with --wait. Owns these rules. Knows of the commands only which of
them need a daemon, and needs nothing that is installed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

DAEMON = "jupiterd"
ASKING = ("jupiterctl", "jupiter-tui")

ALONE = frozenset({"version", "completion", "domain", "logs", "launch", "monitor"})
"""Commands of jupiterctl that need no daemon."""

ORDERING = (("train", "start"), ("cycle", "start"), ("data", "prepare"))
"""Commands that return once their work is recorded, unless they are told to wait."""

NOT_WORKING = frozenset({"--wait", "--dry-run", "--help", "-h"})

UNREACHABLE = 3
"""jupiterctl's exit status where no daemon answers."""

NOT_FOUND, NOT_RUNNABLE = 127, 126
"""A shell's exit statuses where there is no such program, or none that can be run."""

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 45.0
"""Less than compose's stop_grace_period."""


def main(arguments: Sequence[str]) -> int:
    """Do what the container was started for; return its exit status."""
    command = [*arguments] or [DAEMON]
    if command[0].startswith("-"):  # options alone are the daemon's
        command = [DAEMON, *command]
    if not needs_daemon(command) or answers():
        return become(command)
    return run_beside_daemon(waiting(command))


def become(command: Sequence[str]) -> int:
    """Run a command in this process's place; return a status, as a shell does, where it can't."""
    try:
        os.execvp(command[0], command)  # noqa: S606 - that is what a container is for
    except OSError as error:
        sys.stderr.write(f"jupiter: error: {command[0]} can't be run: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE


def needs_daemon(command: Sequence[str]) -> bool:
    """Say whether a command asks a daemon."""
    words = [word for word in command[1:] if not word.startswith("-")]
    if command[0] not in ASKING or {"--help", "-h"} & set(command):
        return False
    return command[0] != "jupiterctl" or bool(words and words[0] not in ALONE)


def waiting(command: Sequence[str]) -> list[str]:
    """Return a command that ends when its work has."""
    words = tuple(word for word in command[1:] if not word.startswith("-"))
    if words[:2] in ORDERING and not NOT_WORKING & set(command):
        return [*command, "--wait"]
    return [*command]


def answers() -> bool:
    """Say whether a daemon answers on the state volume, of this container or another one."""
    return _asked("status").returncode != UNREACHABLE


def is_led() -> bool:
    """Say whether the daemon has a leader, without which it takes no orders."""
    return '"leader": "' in _asked("status", "-o", "json").stdout


def run_beside_daemon(command: Sequence[str]) -> int:
    """Start a daemon, run a command, and stop the daemon; return the command's exit status."""
    told = _told_to_end()
    # In a session of its own, so that Ctrl-C in a terminal reaches the command alone.
    daemon = subprocess.Popen([DAEMON], stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        end_s = time.monotonic() + START_TIMEOUT_S
        while not is_led() and not told:
            if daemon.poll() is not None:
                return daemon.returncode or 1
            if time.monotonic() > end_s:
                sys.stderr.write("jupiter: error: the daemon has no leader after a minute\n")
                return 1
        return 128 + told[0] if told else _run(command)
    finally:
        _stop(daemon)


def _told_to_end() -> list[int]:
    """Return where the signals come to stand that tell this process to end, from now on.

    Nothing is broken off by them: the daemon that was just started must be stopped whatever comes.
    """
    told: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: told.append(number))
    return told


def _run(command: Sequence[str]) -> int:
    """Run a command on this terminal, and pass on to it what the container is told."""
    running = subprocess.Popen(command)

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        running.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGHUP, pass_on)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal has told the command itself
    status = running.wait()
    return status if status >= 0 else 128 - status


def _stop(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    try:
        daemon.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _asked(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["jupiterctl", *words], capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
