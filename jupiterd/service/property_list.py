"""The property list by which launchd runs jupiterd on a Mac.

Owns every key of it. Pure: doesn't know whether launchd is here, or where the file goes.

It is a daemon unless an agent is asked for: since macOS 15 an agent may be refused the local
network without a word (TN3179), and a daemon runs before anybody has logged in.
"""

import plistlib
from pathlib import Path
from typing import Any

from jupiterd.locations import STATE_DIR_VARIABLE, default_state_dir_of
from jupiterd.service.service_request import Scope, ServiceRequest

LABEL = "jupiter.jupiterd"

STOP_S = 120
"""Until launchd kills: it can't be asked for more time while saving."""

RESTART_S = 10

PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/opt/homebrew/bin:/usr/local/bin"
"""What launchd gives by itself lacks the last two."""


def property_list(request: ServiceRequest) -> bytes:
    """Return the property list of a service, as XML."""
    return plistlib.dumps(keys(request), sort_keys=False)


def keys(request: ServiceRequest) -> dict[str, Any]:
    """Return its keys; launchd.plist(5) says what they mean."""
    found: dict[str, Any] = {
        "Label": LABEL,
        "ProgramArguments": [*request.program, "--quiet", *request.arguments],
        "EnvironmentVariables": {
            "HOME": str(request.home),
            "PATH": PATH,
            STATE_DIR_VARIABLE: str(state_dir_of(request)),
        },
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_S,
        "ProcessType": "Interactive",  # else training is slowed down like any other background job
        "ExitTimeOut": STOP_S,
        "Umask": 0o077,
        "StandardOutPath": "/dev/null",
        "StandardErrorPath": str(error_log(request.home)),
    }
    return found | ({"UserName": request.user} if request.scope is Scope.SYSTEM else {})


def state_dir_of(request: ServiceRequest) -> Path:
    """Return the state folder: that of its user, so that jupiterctl finds it unasked."""
    return request.state_dir or default_state_dir_of("darwin", request.home, {})


def error_log(home: Path) -> Path:
    """Return where errors go that come before the log in the state folder, or end the daemon."""
    return home / "Library" / "Logs" / "jupiterd.log"


def state_dir_in(content: bytes) -> Path | None:
    """Return the state folder that a property list of ours names; None where it is none."""
    try:
        return Path(plistlib.loads(content)["EnvironmentVariables"][STATE_DIR_VARIABLE])
    except (plistlib.InvalidFileException, KeyError, TypeError, ValueError):
        return None
