"""Where Jupiter keeps its state on this machine, and where its own files lie.

Owns the rule for the state folder, the names of the sockets, finding `config/`, and how something
is installed beside Jupiter. Doesn't know what is in any of them.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from jupiterd.errors import NotFoundError, UsageError

STATE_DIR_VARIABLE = "JUPITER_STATE_DIR"
"""Names the state folder where no flag does."""

CONTROL_SOCKET = "control.sock"
"""The unix socket inside the state folder on which jupiterd listens for jupiterctl."""

QUESTION_SOCKET = "question.sock"
"""The one beside it for whoever only asks for a document (see `local_query`)."""

SERVE_SOCKET = "serve.sock"
"""And the one on which models answer: HTTP, as OpenAI's API has it."""

LOGS = Path("logs")
"""Inside the state folder: what the daemon and its workers say, a file for each."""

DAEMON_LOG = "jupiterd.log"
"""The daemon's own, in there; the part before the newest is beside it, with `.1` at its end."""

LOCK = "lock"
"""Inside the state folder: held by the daemon that runs with it, whose process it names."""

CURVES = Path("logs", "curves")
"""Inside the state folder, a folder for each run by the first eight digits of its id."""

ROUND_TABLE = "cycles.tsv"
"""Inside the state folder: a line for each finished round of every cycle."""

_COMMAND = re.compile(r"((?<!\bgo )\bon [^:\n]{1,200}: )?\bjupiterctl (?!of\b)(?=[a-z])")

_PACKAGE = Path(__file__).resolve().parent


def state_dir(given: str | Path | None = None) -> Path:
    """Return the state folder: `given` (a flag), else JUPITER_STATE_DIR, else the default.

    Raises:
        UsageError: what names it is empty, as a shell's variable is that was never set.
    """
    named = os.environ.get(STATE_DIR_VARIABLE) if given is None else given
    if named is None:
        return default_state_dir()
    if not str(named):
        where = STATE_DIR_VARIABLE if given is None else "--state-dir"
        raise UsageError(f"{where} is empty", "name a folder, or leave it out for the usual one")
    return Path(named).expanduser().absolute()


def directed(text: str, folder: Path | None) -> str:
    """Return a text in which each command of jupiterctl names the state folder that a flag named.

    Without a flag nothing changes: a command finds the same folder by itself. Commands for other
    machines, `on studio: jupiterctl ...`, stay as they are; `go on with it: ...` is for this one.
    """
    if folder is None or "jupiterctl " not in text:
        return text
    import shlex  # hardly any command gets here

    named = f"jupiterctl --state-dir {shlex.quote(str(folder))} "
    return _COMMAND.sub(lambda found: found[0] if found[1] else named, text)


def default_state_dir() -> Path:
    """Return where this operating system expects a program of this user to keep its state."""
    return default_state_dir_of(sys.platform, Path.home(), os.environ)


def default_state_dir_of(system: str, home: Path, environment: Mapping[str, str]) -> Path:
    """Return the default state folder of a `sys.platform`, a home folder and an environment."""
    if system == "darwin":
        return home / "Library" / "Application Support" / "Jupiter"
    base = environment.get("XDG_STATE_HOME", "")
    # The XDG rules: a relative path in the variable counts as none.
    return (Path(base) if base.startswith("/") else home / ".local" / "state") / "jupiter"


def config_folder() -> Path:
    """Return the folder with jupiter.yaml, domains/ and models/: inside the package.

    In a checkout it is a link to the one beside the package.

    Raises:
        NotFoundError: it isn't there.
    """
    folder = _PACKAGE / "config"
    if (folder / "domains").is_dir():
        return folder
    raise NotFoundError(
        f"Jupiter's config folder is missing: {folder} has no domains",
        "install Jupiter again, or name the file itself",
    )


def pip_install(*wanted: str) -> str:
    """Return the command that installs something where this program finds it.

    A shell's own pip belongs to another Python where Jupiter has an environment of its own.
    """
    import shlex  # every command loads this module, and hardly any asks this

    return shlex.join([sys.executable, "-m", "pip", "install", *wanted])
