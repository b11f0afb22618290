"""The Python that runs a script: one path on every machine, or the one that runs Jupiter there.

Owns that choice and its reason. Doesn't know whether other machines have it: they report that.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jupiterd.ctl.launch.program import CommandLine
from jupiterd.errors import UsageError

JUPITER: Final = "jupiter"
VENV: Final = "venv"

ENVIRONMENTS: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""Variables in which a shell names the active environment; the first one that is set counts."""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and the reason for the choice."""

    path: str
    """The path on this machine, and on all machines unless `is_own`."""
    is_own: bool
    """Each machine uses the Python that runs its Jupiter."""
    reason: str


def choose_interpreter(
    wanted: str, program: CommandLine, folder: Path, environment: Mapping[str, str]
) -> Interpreter | None:
    """Return the Python of a command; None: the command doesn't start with a Python.

    Args:
        wanted: `venv`, `jupiter`, or a path; empty: the command and the shell decide.
        program: the command.
        folder: the folder that relative paths start from.
        environment: the shell's environment variables.

    Raises:
        UsageError: there is no such Python here, no environment is active, or `wanted` is given and
        the command doesn't start with a Python.
    """
    if not program.is_python:
        if wanted:
            raise UsageError(
                f"--python is for commands that begin with python, and this is {program.argv[0]}",
                "such as: jupiterctl launch --python venv -- python -m accelerate.commands.launch",
            )
        return None
    if wanted == JUPITER:
        return own_interpreter("--python jupiter")
    if wanted == VENV:
        return _active(environment)
    if wanted:
        return _named(wanted, folder, f"--python {wanted}")
    if not program.is_bare:
        return _named(program.argv[0], folder, "the command names it")
    return _of_shell(program, environment)


def with_interpreter(program: CommandLine, interpreter: Interpreter | None) -> CommandLine:
    """Return the command with the full path of its Python."""
    if interpreter is None:
        return program
    return replace(program, argv=(interpreter.path, *program.argv[1:]))


def own_interpreter(reason: str) -> Interpreter:
    """Return the Python that runs Jupiter, with the given reason."""
    return Interpreter(sys.executable, is_own=True, reason=reason)


def _of_shell(program: CommandLine, environment: Mapping[str, str]) -> Interpreter:
    """Return the active environment's Python; else the first on the shell's PATH, or our own."""
    name = next((name for name in ENVIRONMENTS if environment.get(name)), "")
    if name and name == ENVIRONMENTS[0] and not _is_in(environment[name], program.argv[0]):
        name = ""  # the environment lacks it, such as `python3.13`
    if name == ENVIRONMENTS[0]:
        return _active(environment)
    if program.is_alone:
        if name and _is_in(environment[name], program.argv[0]):  # conda's
            return _active(environment)
        return own_interpreter("no environment is active")
    found = shutil.which(program.argv[0], path=environment.get("PATH"))
    if found is None:
        return own_interpreter(f"there is no {program.argv[0]} on this shell's PATH")
    if Path(found).parent == Path(sys.executable).parent:
        return own_interpreter("it is the first on this shell's PATH")
    return Interpreter(found, is_own=False, reason="it is the first on this shell's PATH")


def _active(environment: Mapping[str, str]) -> Interpreter:
    for name in ENVIRONMENTS:
        if prefix := environment.get(name, ""):
            if Path(prefix).resolve() == Path(sys.prefix).resolve():
                return own_interpreter(f"the active environment ({name}) is Jupiter's own")
            path = str(Path(prefix, "bin", "python"))
            return _named(path, Path(prefix), f"the active environment ({name})")
    raise UsageError(
        "no environment is active in this shell",
        "activate one (source .venv/bin/activate), or name its Python: --python PATH",
    )


def _named(path: str, folder: Path, reason: str) -> Interpreter:
    full = os.path.normpath(folder / Path(path).expanduser())
    if shutil.which(full) is None:
        raise UsageError(
            f"there is no Python at {full}",
            "name one that is there: --python PATH, or --python jupiter for Jupiter's own",
        )
    return Interpreter(full, is_own=False, reason=reason)


def _is_in(prefix: str, name: str) -> bool:
    return shutil.which(str(Path(prefix, "bin", name))) is not None
