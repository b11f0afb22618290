"""Finds and installs OpenBLAS on this machine.

    python -m jupiterd.processes.openblas [--without-root]

MLX's Linux wheel multiplies matrices about forty times slower without it. Owns finding that one
library and installing it: as root if allowed, else into Python's environment. Doesn't know MLX. The
installation never fails; it prints what it couldn't do.
"""

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PACKAGE: Final = "libopenblas0-pthread"
LIMIT_S: Final = 300

_NAMES = ("openblas-pthread/libopenblas.so.0", "libopenblas.so.0")
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
_OWN = Path("lib", "openblas")
"""Folder inside Python's environment."""


def openblas() -> str | None:
    """Return the path of OpenBLAS; None if it isn't installed, or this isn't Linux."""
    if sys.platform != "linux":
        return None
    folders = (*_FOLDERS, Path(sys.prefix) / _OWN)
    candidates = (Path(folder) / name for folder in folders for name in _NAMES)
    return next((str(path) for path in candidates if path.exists()), None)


def main() -> None:
    """Install OpenBLAS if it is missing, and print the result."""
    if sys.platform != "linux" or _loads(openblas()):
        return
    if "--without-root" not in sys.argv and _install():
        message = f"installed {PACKAGE}, which MLX needs to be fast"
    elif _unpack(Path(sys.prefix) / _OWN):
        message = f"unpacked OpenBLAS into {Path(sys.prefix) / _OWN}: MLX needs it to be fast"
    else:
        message = (
            "MLX will be slow on this machine's CPU until OpenBLAS is installed; all else works\n"
            f"hint: sudo apt-get install {PACKAGE}"
        )
    sys.stdout.write(message + "\n")


def _install() -> bool:
    """Install the package; update the package lists and retry if that fails."""
    before = _privilege() if shutil.which("apt-get") else None
    if before is None:
        return False
    command = [*before, "apt-get", "install", "-y", "--no-install-recommends", PACKAGE]
    if not _succeeds(command):
        _succeeds([*before, "apt-get", "update"])
        _succeeds(command)
    return _loads(openblas())


def _privilege() -> list[str] | None:
    """Return the words before a command that needs root; None if this user can't be root."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _succeeds(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return None


def _unpack(target: Path) -> bool:
    """Extract the library from the distribution's package; that needs no root."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return False
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        place.chmod(0o755)  # for root, apt downloads as a user of its own
        _succeeds(["apt-get", "download", PACKAGE], place)
        for package in place.glob("*.deb"):
            _succeeds(["dpkg-deb", "-x", str(package), folder])
        lying = place / "usr" / "lib" / f"{platform.machine()}-linux-gnu" / "openblas-pthread"
        if lying.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(lying, target, symlinks=True)
    if _loads(openblas()):
        return True
    shutil.rmtree(target, ignore_errors=True)
    return False


def _loads(library: str | None) -> bool:
    """Return whether the library and its own dependencies can be loaded."""
    try:
        return library is not None and bool(ctypes.CDLL(library))
    except OSError:
        return False


def _succeeds(command: Sequence[str], folder: Path | None = None) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment,
            cwd=folder,
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
