"""Errors that say why no daemon answers on a control socket, or why it failed, with hints.

Owns the messages. Doesn't make calls, or find processes (`daemon_process`).
"""

import os
import re
import shlex
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path

from jupiterd.client.daemon_process import (
    PROGRAM,
    is_starting,
    running_process,
    starting_process,
)
from jupiterd.client.socket_path import SocketPath
from jupiterd.errors import DaemonUnreachableError, JupiterError, TimedOutError
from jupiterd.locations import (
    CONTROL_SOCKET,
    DAEMON_LOG,
    LOCK,
    LOGS,
    STATE_DIR_VARIABLE,
    default_state_dir,
)

SYSTEM_UNIT, USER_UNIT = Path("/etc/systemd/system"), Path(".config", "systemd", "user")
UNIT = "jupiterd.service"
LISTENS = "something listens there, but doesn't answer"
NO_FOLDER = "the folder doesn't exist, so no jupiterd ever ran with it"
NO_SOCKET = "the folder is there, and no socket in it"
LEFT_BEHIND = "the socket was left behind by a jupiterd that has ended"
NOBODY_LISTENS = (NO_FOLDER, NO_SOCKET, LEFT_BEHIND)
LAUNCH_FOLDERS = (("system", Path("/Library/LaunchDaemons")), ("gui", Path("Library/LaunchAgents")))


def unreachable(state_dir: Path) -> DaemonUnreachableError:
    """Return the error with the socket that was tried, what is wrong with it, and a hint."""
    message = f"no jupiterd answers on {state_dir / CONTROL_SOCKET}: {_reason(state_dir)}"
    if (pid := running_process(state_dir)) is not None:
        is_new = is_starting(pid) and not _has_listener(state_dir)
        return DaemonUnreachableError(
            f"{message}; its process {pid} {'is starting' if is_new else 'runs'}",
            f"wait a moment, or read its log: {_log_command(state_dir)}; "
            f"it is ended by: kill {pid} (where that does nothing: kill -9 {pid})",
        )
    if state_dir.is_file():
        return DaemonUnreachableError(message, "name the daemon's folder, or leave --state-dir out")
    if (pid := starting_process(state_dir)) is not None:
        return DaemonUnreachableError(
            f"{message}; its process {pid} is starting",
            f"wait a moment; if it goes on: kill {pid}, and {start_command(state_dir)}",
        )
    return DaemonUnreachableError(f"{message}; no process of it runs", _how_to_start(state_dir))


def check_listens(state_dir: Path) -> None:
    """Check, without a request, that a daemon may be there, before work that takes seconds.

    Raises:
        DaemonUnreachableError: there is no socket, or no process listens on it.
    """
    if _reason(state_dir) in NOBODY_LISTENS:
        raise unreachable(state_dir)


def silent(state_dir: Path) -> TimedOutError:
    """Return the error for a daemon that accepts a request and doesn't answer in time."""
    message, pid = "jupiterd didn't answer in time", running_process(state_dir)
    if pid is not None and _is_halted(pid):
        return TimedOutError(
            f"{message}: its process {pid} is halted", f"let it go on with: kill -CONT {pid}"
        )
    return TimedOutError(
        message, f"wait a moment, for the machine may be busy; its log: {_log_command(state_dir)}"
    )


def not_answering(state_dir: Path) -> JupiterError:
    """Return the error for a caller that has sent no request, so the daemon may still answer."""
    pid = running_process(state_dir)
    return unreachable(state_dir) if pid is None or not _is_halted(pid) else silent(state_dir)


def _is_halted(pid: int) -> bool:
    """Return whether a process was stopped by SIGSTOP; always False on systems other than Linux."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return state.rpartition(")")[2].split()[:1] in (["T"], ["t"])
    return False


def failed(state_dir: Path, reason: str) -> JupiterError:
    """Return the error for a daemon that answers with an internal error."""
    return JupiterError(
        f"jupiterd failed: {reason}", f"read its log: {state_dir / LOGS / DAEMON_LOG}"
    )


def start_command(
    state_dir: Path, system: str = sys.platform, home: Path | None = None, root: Path = Path("/")
) -> str:
    """Return the command that starts a daemon with this state folder on this operating system.

    If a service is installed, the command starts it; `root`: the folder that system paths are
    relative to.
    """
    if state_dir != default_state_dir():
        return f"jupiterd {_state_option(state_dir)}"
    return _service_command(system, Path.home() if home is None else home, root) or PROGRAM


def _how_to_start(state_dir: Path) -> str:
    """Return a hint; which options a daemon had, such as --local, its folder doesn't record."""
    command = start_command(state_dir)
    if command.startswith(PROGRAM) and (state_dir / LOCK).exists():
        return f"start it again, with the options it had: {command}"
    return f"start it with: {command}"


def _log_command(state_dir: Path) -> str:
    if state_dir != default_state_dir():
        return f"jupiterctl {_state_option(state_dir)} logs"
    return "jupiterctl logs"


def _state_option(state_dir: Path) -> str:
    return f"--state-dir {shlex.quote(str(state_dir))}"


def _service_command(system: str, home: Path, root: Path) -> str:
    """Return the command that starts the installed service; empty: there is none."""
    if system == "darwin":
        for domain, folder in LAUNCH_FOLDERS:
            base = root / folder.relative_to("/") if folder.is_absolute() else home / folder
            for plist in sorted(base.glob(f"*{PROGRAM}*.plist")):
                target = f"gui/{os.getuid()}" if domain == "gui" else domain
                return (
                    f"{'' if domain == 'gui' else 'sudo '}launchctl kickstart {target}/{plist.stem}"
                )
        return ""
    if (home / USER_UNIT / UNIT).exists():
        return f"systemctl --user start {PROGRAM}"
    if (unit := root / SYSTEM_UNIT.relative_to("/") / UNIT).exists():
        return f"sudo systemctl start {PROGRAM}{_elsewhere(unit)}"
    return ""


def _elsewhere(unit: Path) -> str:
    """Return a hint about how to call the system's service, if its unit names a state folder."""
    found = re.search(rf'{STATE_DIR_VARIABLE}=([^"\n]+)', unit.read_text(errors="replace"))
    if found is None:
        return ""
    arguments = f"--state-dir {shlex.quote(found[1])} status"
    return f'; then ask it with: sudo "$(command -v jupiterctl)" {arguments}'


def _reason(state_dir: Path) -> str:
    try:
        if not state_dir.is_dir():
            return "it is a file, and no folder" if state_dir.is_file() else NO_FOLDER
        mode = (state_dir / CONTROL_SOCKET).lstat().st_mode
    except FileNotFoundError:
        return NO_SOCKET
    except PermissionError:
        return "the folder belongs to another user"
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISSOCK(mode):
        return "that file is no socket"
    return _answer(state_dir)


def _has_listener(state_dir: Path) -> bool:
    return _reason(state_dir) == LISTENS


def _answer(state_dir: Path) -> str:
    """Return what happens when connecting: LEFT_BEHIND, LISTENS, or an error."""
    with SocketPath(state_dir) as path, socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path.short))
        except ConnectionRefusedError:
            return LEFT_BEHIND
        except PermissionError:
            return "the socket belongs to another user"
        except OSError as error:
            return error.strerror or str(error) or "it doesn't answer"
    return LISTENS
