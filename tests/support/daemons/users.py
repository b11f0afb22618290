"""Running a command as another user who can do nothing but read the interpreter and the code.

Owns the way there. The interpreter may lie in a folder that other users can't enter (a home folder,
most likely). Then the command gets a private view of the file system, in which that folder is
replaced by an empty one with the interpreter's own tree in its place. The real folders, and their
modes, stay as they are.
"""

import os
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import jupiterd

REPOSITORY = Path(jupiterd.__file__).parent.parent
CAN_RUN = "import jupiterd.daemon.app.node, jupiterd.workers.link; open('/dev/null', 'w').close()"
PROBE_TIMEOUT_S = 60


def as_user(uid: int, stage: Path) -> Sequence[str]:
    """Return what a command begins with to run as `uid`, a user that needs no account.

    `stage` is an empty folder that everybody can enter.
    """
    drop = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--")
    needed = _needed()
    blocked = sorted({folder for path in needed if (folder := _blocked(path)) is not None})
    if not blocked:
        return drop
    script = "\n".join(["set -e", *_replaced(blocked, needed, stage), 'exec "$@"'])
    return ("unshare", "--mount", "sh", "-c", script, "as-user", *drop)


def why_not(uid: int, stage: Path) -> str:
    """Say why no command can run as another user here; empty where one can."""
    if sys.platform != "linux" or os.getuid():
        return "only root on Linux can run daemons as other users"
    if missing := [tool for tool in ("setpriv", "unshare") if shutil.which(tool) is None]:
        return f"{missing[0]} (util-linux) isn't installed"
    if (folder := _blocked(stage)) is not None:
        return f"other users can't enter {folder}, where tests keep their files"
    tried = subprocess.run(
        [*as_user(uid, stage), sys.executable, "-P", "-c", CAN_RUN],
        capture_output=True,
        text=True,
        timeout=PROBE_TIMEOUT_S,
        cwd=stage,
        check=False,
    )
    last = (tried.stderr.strip().splitlines() or ["no reason was given"])[-1]
    return f"another user can't run {sys.executable}: {last}" if tried.returncode else ""


def _needed() -> list[Path]:
    """Return the trees that a daemon is made of, by every name they go by."""
    named = (Path(sys.base_prefix), Path(sys.prefix), REPOSITORY)
    return list(dict.fromkeys(path for name in named for path in (name, name.resolve())))


def _blocked(path: Path) -> Path | None:
    """Return the topmost folder on the way to `path`, itself included, that others can't enter."""
    way = [*reversed(path.parents), path]
    return next((folder for folder in way if not folder.stat().st_mode & stat.S_IXOTH), None)


def _replaced(blocked: Sequence[Path], needed: Sequence[Path], stage: Path) -> list[str]:
    """Return shell commands that put empty folders over the blocked ones, and the trees back in."""
    kept = {
        path: stage / f"tree-{number}"
        for number, path in enumerate(needed)
        if any(path.is_relative_to(folder) for folder in blocked)
    }
    return [
        "mount --make-rprivate /",
        *(
            f"mkdir -p {_q(place)}; mount --bind {_q(path)} {_q(place)}"
            for path, place in kept.items()
        ),
        *(f"mount -t tmpfs -o mode=0755 tmpfs {_q(folder)}" for folder in blocked),
        *(
            f"mkdir -p {_q(path)}; mount --bind {_q(place)} {_q(path)}"
            for path, place in kept.items()
        ),
    ]


def _q(path: Path) -> str:
    return shlex.quote(str(path))
