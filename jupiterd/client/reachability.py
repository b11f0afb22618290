"""Why no daemon answers on a control socket, or none of use, in words, and what to do.

Owns the sentences. Doesn't know channels or calls.
"""

import shlex
import socket
import stat
from pathlib import Path

from jupiterd.client.socket_path import SocketPath
from jupiterd.errors import DaemonUnreachableError, JupiterError
from jupiterd.locations import CONTROL_SOCKET, default_state_dir


def unreachable(state_dir: Path) -> DaemonUnreachableError:
    """Return the error that says which socket was tried, what is wrong with it, and what to do."""
    return DaemonUnreachableError(
        f"no jupiterd answers on {state_dir / CONTROL_SOCKET}: {_reason(state_dir)}",
        f"start it with: {start_command(state_dir)}",
    )


def failed(state_dir: Path, reason: str) -> JupiterError:
    """Return the error of a daemon that answers, and has met a mistake of its own."""
    return JupiterError(f"jupiterd failed: {reason}", f"read its log: {state_dir / 'logs'}")


def start_command(state_dir: Path) -> str:
    """Return the command that starts a daemon with this state folder; Linux and macOS alike."""
    if state_dir == default_state_dir():
        return "jupiterd"
    return f"jupiterd --state-dir {shlex.quote(str(state_dir))}"


def _reason(state_dir: Path) -> str:
    try:
        if not state_dir.is_dir():
            return "the folder doesn't exist, so no jupiterd ever ran with it"
        mode = (state_dir / CONTROL_SOCKET).lstat().st_mode
    except FileNotFoundError:
        return "the folder is there, but jupiterd isn't running"
    except PermissionError:
        return "the folder belongs to another user"
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISSOCK(mode):
        return "that file is no socket"
    return _answer(state_dir)


def _answer(state_dir: Path) -> str:
    """Tell a socket that was left behind from one whose owner is too busy, or isn't ours."""
    with SocketPath(state_dir) as path, socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path.short))
        except ConnectionRefusedError:
            return "the socket was left behind by a jupiterd that has ended"
        except PermissionError:
            return "the socket belongs to another user"
        except OSError as error:
            return error.strerror or str(error) or "it doesn't answer"
    return "something listens there, but it closed the connection"
