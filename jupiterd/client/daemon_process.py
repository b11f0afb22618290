"""The process of the daemon that has locked a state folder, or is about to.

Owns finding it by the folder's lock file and by the command lines of this machine's processes.
Doesn't know sockets, or the messages about it.
"""

import os
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jupiterd.locations import LOCK, STATE_DIR_VARIABLE, default_state_dir

if TYPE_CHECKING:
    import psutil

PROGRAM = "jupiterd"

STARTING_S = 120.0
"""Seconds: a younger process that doesn't listen yet counts as starting, also on a busy machine."""

_HAVE_VALUE = frozenset({"-X", "-W", "--check-hash-based-pycs"})
"""Options of the Python interpreter whose value is the next word."""

_is_interpreter = re.compile(r"python[\d.]*t?", re.IGNORECASE).fullmatch
_ends_options = re.compile(r"-$|-[A-VY-Za-z]*[cm]").match
"""Matches options that run no file: `-` (its input), `-c` (code) and `-m` (a module)."""

_OTHER_COMMANDS = frozenset({"doctor", "service", "--help", "-h", "--version"})
"""Arguments with which jupiterd doesn't run as a daemon."""


def running_process(state_dir: Path) -> int | None:
    """Return the process id of the daemon that has locked this state folder; None: none runs.

    Doesn't try to take the folder's lock: a daemon that starts at that moment would find it taken.
    """
    try:
        pid = int((state_dir / LOCK).read_text(encoding="ascii"))
        os.kill(pid, 0)
    except PermissionError:
        pass  # the process, or the folder, is another user's
    except (OSError, ValueError, OverflowError):
        return None
    else:
        return pid if _is_ours(pid) else None
    return None


def starting_process(state_dir: Path) -> int | None:
    """Return the id of a process that was started with this state folder, if it is still starting.

    Such a process loads its libraries before it locks the folder, which takes seconds.
    """
    import psutil  # only needed if no daemon answers

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError, ValueError):
            if _is_young(process) and _state_dir_of(process) == state_dir.resolve():
                return process.pid
    return None


def is_starting(pid: int) -> bool:
    """Return whether a process is younger than STARTING_S, so that it may not listen yet."""
    import psutil  # only needed if no daemon answers

    with suppress(psutil.Error):
        return _is_young(psutil.Process(pid))
    return False


def _is_young(process: "psutil.Process") -> bool:
    now_s = time.time()  # noqa: TID251 - the clock of a process's start
    return now_s - process.create_time() < STARTING_S


def _state_dir_of(process: "psutil.Process") -> Path | None:
    """Return the state folder that a daemon was started with; None: the process is no daemon."""
    words = process.cmdline()
    if not (arguments := daemon_arguments(words)) or _OTHER_COMMANDS & set(arguments[1:]):
        return None
    named = _option(arguments) or process.environ().get(STATE_DIR_VARIABLE)
    if not named:
        return default_state_dir().resolve()
    return Path(process.cwd(), Path(named).expanduser()).resolve()


def daemon_arguments(words: Sequence[str]) -> Sequence[str]:
    """Return jupiterd's part of a command line, from its name on; empty: another program.

    Args:
        words: the command line of a process; it may begin with an interpreter and its options.
    """
    rest = _script(words[1:]) if words and _is_interpreter(Path(words[0]).name) else words
    return rest if rest and Path(rest[0]).name == PROGRAM else ()


def _script(words: Sequence[str]) -> Sequence[str]:
    """Return the file that an interpreter runs, and its arguments; empty: it runs no file."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        if _ends_options(words[place]):
            return ()
        place += 2 if words[place] in _HAVE_VALUE else 1
    return words[place:]


def _option(arguments: Sequence[str]) -> str:
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, value = word.partition("=")
        if name == "--state-dir":
            return value or following
    return ""


def _is_ours(pid: int) -> bool:
    """Return whether a process is a jupiterd: the system may have reused its id."""
    with suppress(OSError):
        return PROGRAM.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return sys.platform != "linux"
