"""Which Python runs a script: the same one on every machine, or the one that runs Jupiter on each.

Owns that choice and the words for it. Doesn't know whether it is there on other machines: they say.
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
"""Variables by which a shell says which environment is active; the first that is set counts."""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and why it is that one."""

    path: str
    """Here; and on all machines, unless each has its own."""
    is_own: bool
    """Each machine takes the one that runs its Jupiter."""
    reason: str


def choose_interpreter(
    wanted: str, program: CommandLine, folder: Path, environment: Mapping[str, str]
) -> Interpreter | None:
    """Return the Python of a command; None where the command isn't one of Python's.

    Args:
        wanted: `venv`, `jupiter`, or a path; empty: as the command and the shell have it.
        program: the command.
        folder: where relative paths begin.
        environment: the shell's.

    Raises:
        UsageError: there is no such Python here, or the command begins with another program.
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
    """Return the command with its Python named in full."""
    if interpreter is None:
        return program
    return replace(program, argv=(interpreter.path, *program.argv[1:]))


def own_interpreter(reason: str) -> Interpreter:
    """Return the Python that runs Jupiter."""
    return Interpreter(sys.executable, is_own=True, reason=reason)


def _of_shell(program: CommandLine, environment: Mapping[str, str]) -> Interpreter:
    """Return the one of the active environment; else what the shell's path says, or our own."""
    name = next((name for name in ENVIRONMENTS if environment.get(name)), "")
    if name and name == ENVIRONMENTS[0] and not _is_in(environment[name], program.argv[0]):
        name = ""  # such as `python3.13`, which that environment hasn't
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
