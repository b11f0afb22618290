"""From a command line to the service that it requests, and what must hold before installing it.

Owns reading this machine's user, program and rights. Doesn't know how services are installed.
"""

import os
import pwd
import shlex
import shutil
import stat
import sys
from itertools import chain
from pathlib import Path

from jupiterd import __version__
from jupiterd.client.question import answer_to
from jupiterd.daemon.runtime.options import DaemonOptions
from jupiterd.daemon.runtime.settings import environment, load_settings
from jupiterd.daemon.runtime.state_dir import holder_of
from jupiterd.errors import ConflictError, JupiterError, NotFoundError, RefusedError, UsageError
from jupiterd.locations import STATE_DIR_VARIABLE, default_state_dir_of, state_dir
from jupiterd.service.service_request import SYSTEM_STATE_DIR, SYSTEM_USER, Scope, ServiceRequest
from jupiterd.service.service_status import ServiceStatus


def requested_service(scope: Scope, given: DaemonOptions, run_as: str | None) -> ServiceRequest:
    """Return the service that a command line requests.

    Raises:
        InvalidSettingError: the daemon wouldn't start with these options.
        UsageError: an option means nothing here.
        NotFoundError: there is no user of that name.
    """
    settings = dict(given.settings)
    if "join" in settings:
        raise UsageError(
            "a service starts again and again, and a token is good for a day",
            "start jupiterd --join - once by hand, end it with Ctrl-C, then install it",
        )
    load_settings(given.settings, {}, given.config)
    if run_as and scope is Scope.USER:
        raise UsageError("a user's own service runs as that user", "leave out --run-as")
    named_folder = settings.pop("state_dir", None)
    user = run_as or _usual_user(scope)
    return ServiceRequest(
        scope=scope,
        program=_program(),
        arguments=DaemonOptions(given.config, given.debug, given.quiet, settings).arguments(),
        state_dir=_state_dir(scope, named_folder),
        user=user,
        home=_home_of(user),
    )


def require_rights(scope: Scope, verb: str, arguments: tuple[str, ...]) -> None:
    """Raise RefusedError where only root may do it; the hint is the whole command."""
    if scope is Scope.SYSTEM and os.geteuid() != 0:
        again = shlex.join([*_program(), "service", verb, *arguments])
        raise RefusedError(f"only root can {verb} a service of the machine", f"sudo {again}")


def require_free(request: ServiceRequest, current: ServiceStatus) -> None:
    """Raise what would keep the service from running.

    Raises:
        ConflictError: another daemon has the state folder.
        RefusedError: the service's user may not run the program.
    """
    if sys.platform == "linux" and request.user == SYSTEM_USER:
        _require_open_to_all(Path(request.program[0]), Path(sys.executable))
    folder = _folder_of(request)
    if not current.is_running and (process := holder_of(folder)):
        raise ConflictError(
            f"a jupiterd that isn't this service (process {process}) has the state folder {folder}",
            "end it first, such as with Ctrl-C where it runs",
        )


def is_outdated(request: ServiceRequest) -> bool:
    """Say whether another version than this one runs with the service's state folder."""
    try:
        status = answer_to("status", _folder_of(request))
    except JupiterError:
        return False
    own = status["node"]["id"] if status else None
    rows = [row for row in status["nodes"] if row["id"] == own] if status else []
    versions = [row.get("hardware", {}).get("versions", {}).get("jupiterd") for row in rows]
    return bool(versions) and versions[0] not in (None, __version__)


def _folder_of(request: ServiceRequest) -> Path:
    """Return the state folder; root, who installs it, has another one than its user."""
    if request.state_dir is not None or request.scope is Scope.USER:
        return state_dir(request.state_dir)
    return default_state_dir_of(sys.platform, request.home, {})


def _require_open_to_all(program: Path, interpreter: Path) -> None:
    """The user of the system unit has no rights of its own, and a home folder may be closed."""
    files = (program, program.resolve(), interpreter, interpreter.resolve())
    for path in (*files, *chain.from_iterable(file.parents for file in files)):
        if not path.stat().st_mode & stat.S_IXOTH:
            raise RefusedError(
                f"the user {SYSTEM_USER} couldn't run {program}: {path} is closed to it",
                f"let it run as {path.owner()}: add --run-as {path.owner()}; or install Jupiter "
                "where everybody may read it: installers/install.sh --prefix /usr/local",
            )


def _usual_user(scope: Scope) -> str:
    if scope is Scope.SYSTEM and sys.platform == "linux":
        return SYSTEM_USER
    sudo_user = environment().get("SUDO_USER") if scope is Scope.SYSTEM else None
    return sudo_user or pwd.getpwuid(os.getuid()).pw_name


def _home_of(user: str) -> Path:
    try:
        return Path(pwd.getpwnam(user).pw_dir)
    except KeyError as error:
        if user == SYSTEM_USER:  # created by systemd-sysusers
            return SYSTEM_STATE_DIR
        raise NotFoundError(f"there is no user {user}", "name another one with --run-as") from error


def _state_dir(scope: Scope, option: object) -> Path | None:
    """Return the folder that was named, else the machine's own; None: the user's usual one."""
    usual = environment().get(STATE_DIR_VARIABLE) if scope is Scope.USER else None
    named = usual if option is None else option
    if named is not None:
        return state_dir(str(named))
    return SYSTEM_STATE_DIR if scope is Scope.SYSTEM and sys.platform == "linux" else None


def _program() -> tuple[str, ...]:
    """Return what starts this program again, by its whole path, even after an upgrade."""
    called = Path(sys.argv[0])
    if called.name == "jupiterd":
        found = shutil.which(sys.argv[0]) or str(called)
        return (str(Path(found).absolute()),)
    return (sys.executable, "-m", "jupiterd.daemon.app.main")
