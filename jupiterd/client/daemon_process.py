"""The process of the daemon that holds a state folder, or is about to take it.

Owns finding it, from the folder's lock and from what the processes of this machine were started
with. Doesn't know sockets, or what is said of it.
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
"""A process that is younger, and doesn't listen yet, is starting; however busy the machine is."""

_HAVE_VALUE = frozenset({"-X", "-W", "--check-hash-based-pycs"})
"""Options of the interpreter whose value is the next word."""

_is_interpreter = re.compile(r"python[\d.]*t?", re.IGNORECASE).fullmatch
_ends_options = re.compile(r"-$|-[A-VY-Za-z]*[cm]").match
"""What an interpreter runs in the place of a file: its input, code, or a module."""

_OTHER_COMMANDS = frozenset({"doctor", "service", "--help", "-h", "--version"})
"""What jupiterd is started with where it is to be no daemon."""


def running_process(state_dir: Path) -> int | None:
    """Return the process of the daemon that holds this state folder; None where none runs.

    The folder's lock isn't tried: a daemon that starts just then would find it taken.
    """
    try:
        pid = int((state_dir / LOCK).read_text(encoding="ascii"))
        os.kill(pid, 0)
    except PermissionError:
        pass  # it is there, and somebody else's
    except (OSError, ValueError, OverflowError):
        return None
    else:
        return pid if _is_ours(pid) else None
    return None


def starting_process(state_dir: Path) -> int | None:
    """Return a process that was started with this state folder and doesn't hold it yet.

    It loads its libraries first, which takes seconds, on a busy machine many.
    """
    import psutil  # only where nobody answers

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError, ValueError):
            if _is_young(process) and _state_dir_of(process) == state_dir.resolve():
                return process.pid
    return None


def is_starting(pid: int) -> bool:
    """Say whether a daemon that doesn't listen is so young that it can't be expected to."""
    import psutil  # only where nobody answers

    with suppress(psutil.Error):
        return _is_young(psutil.Process(pid))
    return False


def _is_young(process: "psutil.Process") -> bool:
    now_s = time.time()  # noqa: TID251 - the clock of a process's start
    return now_s - process.create_time() < STARTING_S


def _state_dir_of(process: "psutil.Process") -> Path | None:
    """Return the state folder that a daemon was started with; None where it is no daemon."""
    words = process.cmdline()
    if not (arguments := daemon_arguments(words)) or _OTHER_COMMANDS & set(arguments[1:]):
        return None
    named = _option(arguments) or process.environ().get(STATE_DIR_VARIABLE)
    if not named:
        return default_state_dir().resolve()
    return Path(process.cwd(), Path(named).expanduser()).resolve()


def daemon_arguments(words: Sequence[str]) -> Sequence[str]:
    """Return the program's name and what follows it; nothing where it is another program.

    Args:
        words: what a process was started with; an interpreter and its options may come first.
    """
    rest = _script(words[1:]) if words and _is_interpreter(Path(words[0]).name) else words
    return rest if rest and Path(rest[0]).name == PROGRAM else ()


def _script(words: Sequence[str]) -> Sequence[str]:
    """Return the file that an interpreter runs, and what follows it; nothing where it has none."""
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
    """Say whether a process is a jupiterd: the number may be another program's by now."""
    with suppress(OSError):
        return PROGRAM.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return sys.platform != "linux"
