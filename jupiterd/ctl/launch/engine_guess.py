"""Guesses whether a script is written for torch or MLX, from what it and its own files import.

Owns the guess and its reason. Doesn't run the script. If both are imported, the file that is nearer
to the entry decides.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupiterd.ctl.launch.local_imports import Imports, local_imports, module_file
from jupiterd.ctl.launch.program import CommandLine
from jupiterd.processes.script_plan import MLX, TORCH

ASK_TIMEOUT_S: Final = 10.0

NOTHING: Final = Imports((), ())


@dataclass(frozen=True)
class EngineGuess:
    """An engine, and the reason for it."""

    engine: str
    reason: str


def guess_engine(imports: Imports, folder: Path) -> EngineGuess:
    """Return torch or mlx, by what is imported; the reason names a file relative to the folder."""
    files = {file: number for number, file in enumerate(imports.files)}
    by_name = dict(imports.outside)
    found = [
        (files.get(by_name[name], len(files)), engine != MLX, engine, by_name[name])
        for name, engine in (("mlx", MLX), ("torch", TORCH))
        if name in by_name
    ]
    if not found:
        return EngineGuess(TORCH, "no import of mlx was found")
    _, _, engine, file = min(found)
    is_near = file.is_relative_to(folder)
    shown = file.relative_to(folder) if is_near else Path(file.parent.name, file.name)
    return EngineGuess(engine, f"{shown} imports it")


def imports_of(program: CommandLine, folder: Path, python: str) -> Imports:
    """Return what a program imports; nothing if it isn't known which file runs.

    A module that isn't below the folder is searched on this Python's path, and its imports are
    followed inside its own package.
    """
    if program.module and (file := module_file(program.module, (folder,))) is not None:
        return local_imports(file, (folder,), folder)
    if program.script:
        script = Path(program.script)
        return local_imports(script, (script.parent, folder), _common(script.parent, folder))
    if not program.module:
        return NOTHING
    roots = search_path(python)
    file = module_file(program.module, roots)
    # Use the deepest root: a project on the path may contain its environment with all packages.
    around = [each for each in roots if file is not None and file.is_relative_to(each)]
    if file is None or not around:
        return NOTHING
    root = max(around, key=lambda each: len(each.parts))
    return local_imports(file, (root,), root / program.module.partition(".")[0])


def search_path(python: str) -> list[Path]:
    """Return the module search path of a Python; empty if it can't be run."""
    import subprocess

    if Path(python) == Path(sys.executable):
        return [Path(each) for each in sys.path if each]
    ask = [python, "-c", r"import sys; print('\n'.join(sys.path))"]
    try:
        said = subprocess.run(
            ask, capture_output=True, text=True, timeout=ASK_TIMEOUT_S, check=True, cwd="/"
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [Path(each) for each in said.splitlines() if each]


def own_files(imports: Imports, folder: Path) -> Sequence[str]:
    """Return the files of a program that lie below its folder, relative to it."""
    below = (file for file in imports.files if file.is_relative_to(folder))
    return [file.relative_to(folder).as_posix() for file in below]


def _common(first: Path, second: Path) -> Path:
    """Return the second folder if it contains the first, else the first."""
    return second if first.is_relative_to(second) else first
