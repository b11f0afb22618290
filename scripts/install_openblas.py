"""Install OpenBLAS where it is missing and we may; else print the command. Never fails.

MLX's Linux wheel multiplies matrices about forty times slower without it.
Owns that one package; knows nothing of MLX.
"""

import ctypes
import os
import shutil
import subprocess
import sys

LIBRARY = "libopenblas.so.0"
PACKAGE = "libopenblas0-pthread"
LIMIT_S = 300


def is_present() -> bool:
    """Say whether the system's loader finds the library."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


def privilege() -> list[str] | None:
    """Return the words to put before a command that needs root; None where we may not."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and _succeeds(["sudo", "-n", "true"]):
        return ["sudo", "-n"]
    return None


def install(before: list[str]) -> bool:
    """Install the package, with fresh package lists if the ones here are too old."""
    command = [*before, "apt-get", "install", "-y", "--no-install-recommends", PACKAGE]
    if _succeeds(command):
        return True
    return _succeeds([*before, "apt-get", "update"]) and _succeeds(command)


def main() -> None:
    """Do what is possible and say what isn't."""
    if sys.platform != "linux" or is_present():
        return
    before = privilege() if shutil.which("apt-get") else None
    if before is not None and install(before) and is_present():
        print(f"installed {PACKAGE}, which MLX needs to be fast")
        return
    print(
        "MLX will be slow on this machine's CPU until OpenBLAS is installed; all else works\n"
        f"hint: sudo apt-get install {PACKAGE}"
    )


def _succeeds(command: list[str]) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, env=environment, timeout=LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
