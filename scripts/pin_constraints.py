"""Write constraints.txt, the exact version of all that `make setup` installs, and the locks.

Resolves pyproject.toml afresh in an environment that is thrown away. A lock, requirements/*.txt,
names the hash of every file of what an extra needs, on every system, as pip checks no hashes of
constraints. torch, and what its builds for GPUs bring, is in none of them: people keep a torch of
their own, and take it from an index of their own.
"""

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "constraints.txt"
EXTRAS = "cpu,dev"

LOCKS = ROOT / "requirements"
LOCKED = ("none", "cpu", "mac", "nvidia")
"""The extras that the installer knows."""

OWN_PIN = re.compile(r"^torch==\S+", re.MULTILINE)
"""pyproject.toml takes many versions of torch; which one is tested is chosen in constraints.txt."""

UV = "uv==0.13.9"
"""Resolves for all systems at once, and writes the hashes of all files."""

OF_TORCH = re.compile(r"(torch|triton|setuptools|cuda-[a-z]+|nvidia-(?!ml-py)[a-z0-9-]+)==")
"""What torch is and brings, and what Python's own environments bring."""

LOCK_HEADER = """\
# What the extra {extra} needs beside torch: pip install --require-hashes --no-deps -r ...
# Written by: make constraints
"""

HEADER = f"""\
# The exact version of everything that `make setup` installs: pip install -c constraints.txt ...
# Resolved on Linux with the extras {EXTRAS}; written by: make constraints
"""


def pins(frozen: str) -> list[str]:
    """Return the lines `name==version` of a `pip freeze`, sorted, without our own package.

    A local version such as +cpu is cut off: which build is taken is the index's business.
    """
    found = [line.partition("+")[0] for line in frozen.splitlines() if "==" in line]
    return sorted((line for line in found if not line.startswith(("#", "-e"))), key=str.lower)


def chosen_torch(constraints: str) -> str:
    """Return the pin of torch, which stays until somebody changes it there and tests it."""
    found = OWN_PIN.search(constraints)
    if found is None:
        sys.exit("constraints.txt pins no torch: write the line torch==VERSION")
    return found.group()


def resolve() -> str:
    """Install everything into a fresh environment; return what `pip freeze` says then."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        wanted = [f"{ROOT}[{EXTRAS}]", chosen_torch(TARGET.read_text())]
        subprocess.run([*pip, "install", "--quiet", *wanted], check=True)
        freeze = [*pip, "freeze", "--exclude", "jupiterd"]
        return subprocess.run(freeze, check=True, capture_output=True, text=True).stdout


def lock(extra: str) -> str:
    """Return what an extra needs, at the versions of constraints.txt, with all hashes."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--quiet", UV], check=True)
        compiling = [f"{folder}/bin/uv", "pip", "compile", "pyproject.toml", "--quiet"]
        compiling += ["--universal", "--python-version", "3.11", "--constraint", str(TARGET)]
        compiling += ["--generate-hashes", "--no-header", "--no-annotate", "--no-config"]
        compiling += [] if extra == "none" else ["--extra", extra]
        done = subprocess.run(compiling, check=True, capture_output=True, text=True, cwd=ROOT)
        return LOCK_HEADER.format(extra=extra) + without_torch(done.stdout)


def without_torch(locked: str) -> str:
    """Return a lock without what torch is and brings; each block begins with name and version."""
    blocks = re.split(r"^(?=\S)", locked, flags=re.MULTILINE)
    return "".join(block for block in blocks if not OF_TORCH.match(block))


def main() -> None:
    """Write the files."""
    if not sys.platform.startswith("linux"):
        sys.exit("the pins are made on Linux, where both engines can be installed")
    lines = pins(resolve())
    TARGET.write_text(HEADER + "\n".join(lines) + "\n")
    print(f"{TARGET.name}: {len(lines)} pins")
    write_locks()


def write_locks() -> None:
    """Write requirements/ for the versions that constraints.txt names."""
    LOCKS.mkdir(exist_ok=True)
    for extra in LOCKED:
        (LOCKS / f"{extra}.txt").write_text(lock(extra))
        print(f"{LOCKS.name}/{extra}.txt")


if __name__ == "__main__":
    main()
