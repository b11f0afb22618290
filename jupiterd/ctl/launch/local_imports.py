"""The files that a script imports from one folder, and the modules that it imports from elsewhere.

Owns following the import statements, wherever they stand in a file; runs nothing. Doesn't know what
the files are used for. Doesn't find imports whose names are computed at run time.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAX_FILES: Final = 2000
MAX_READ_BYTES: Final = 1 << 20
"""Larger files are taken for data: they count as files, but their imports aren't followed."""

_INIT: Final = "__init__.py"


@dataclass(frozen=True)
class Imports:
    """The files and modules that a program's import statements name."""

    files: tuple[Path, ...]
    """The program's own files: the entry, then the others in the order in which they are found."""
    outside: tuple[tuple[str, Path], ...]
    """(top-level name of a module outside the folder, the first file that imports it)."""


def local_imports(entry: Path, roots: Sequence[Path], below: Path) -> Imports:
    """Return the files and modules that a file imports, directly or through other files.

    Args:
        entry: the file that is run.
        roots: the folders in which modules are searched, like sys.path.
        below: only imports of files below this folder are followed.
    """
    found: dict[Path, None] = dict.fromkeys([*_packages_of(entry, roots), entry])
    outside: dict[str, Path] = {}
    for file in _each_growing(found):
        for name, level in _imported(file):
            inner = [*_resolved(name, level, file, roots)]
            found |= dict.fromkeys(path for path in inner if path.is_relative_to(below))
            if not level and not any(path.is_relative_to(below) for path in inner):
                outside.setdefault(name.partition(".")[0], file)
    files = tuple(dict.fromkeys([entry, *found]))[:MAX_FILES]
    return Imports(files, tuple(outside.items()))


def module_file(name: str, roots: Sequence[Path]) -> Path | None:
    """Return the file that `python -m name` runs; None: it isn't below one of these folders."""
    for root in roots:
        base = root.joinpath(*name.split("."))
        for path in (base.with_name(f"{base.name}.py"), base / "__main__.py"):
            if path.is_file():
                return path
    return None


def _each_growing(files: dict[Path, None]) -> Iterator[Path]:
    """Yield each file once, including files that are added during the iteration."""
    seen = 0
    while seen < min(len(files), MAX_FILES):
        file = [*files][seen]
        seen += 1
        yield file


def _imported(file: Path) -> Iterator[tuple[str, int]]:
    """Yield (name, level) for each import of a file; level: the number of leading dots."""
    for node in ast.walk(_parsed(file)):
        match node:
            case ast.Import(names):
                yield from ((each.name, 0) for each in names)
            case ast.ImportFrom(module, names, level):
                base = module or ""
                yield base, level or 0
                yield from (
                    (f"{base}.{each.name}" if base else each.name, level or 0)
                    for each in names
                    if base or level
                )
            case ast.Call(func, [ast.Constant(str(name)), *_]) if _is_import_module(func):
                yield name.lstrip("."), len(name) - len(name.lstrip("."))
            case _:
                pass


def _is_import_module(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else ""
    return name == "import_module" or (
        isinstance(function, ast.Name) and function.id in {"import_module", "__import__"}
    )


def _parsed(file: Path) -> ast.Module:
    try:
        if file.stat().st_size <= MAX_READ_BYTES:
            return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):  # running the script will report it
        pass
    return ast.Module([], [])


def _resolved(name: str, level: int, file: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that an import runs: the module's, and those of its parent packages."""
    parts = [part for part in name.split(".") if part]
    starts = [file.parents[level - 1]] if 0 < level <= len(file.parents) else roots
    for start in starts:
        inner = [*_below(start, parts)]
        if inner or (level and not parts):
            init = start / _INIT
            yield from ([init] if level and init.is_file() else [])
            yield from inner
            return


def _below(start: Path, parts: Sequence[str]) -> Iterator[Path]:
    folder = start
    for part in parts:
        module, package = folder / f"{part}.py", folder / part
        if (package / _INIT).is_file():
            yield package / _INIT
        elif module.is_file():
            yield module
            return
        elif not package.is_dir():
            return
        folder = package


def _packages_of(entry: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the __init__.py files of a module's parent packages, the outermost first."""
    for folder in reversed(entry.parents):
        if (folder / _INIT).is_file() and any(folder.is_relative_to(root) for root in roots):
            yield folder / _INIT
