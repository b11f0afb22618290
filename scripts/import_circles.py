"""Prove that no module of the product imports itself by way of others.

    python scripts/import_circles.py

Every import counts: at the top of a module, within a function, and for types alone. Owns the graph
of imports and what lies on a circle in it. Doesn't know which package may import which: that is
import-linter's, in pyproject.toml.
"""

import ast
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("jupiterd", "jupiter_tui")

Graph = Mapping[str, AbstractSet[str]]
"""Module -> the modules that it imports."""

KNOWN: Final[frozenset[str]] = frozenset({})
"""Modules that still lie on a circle; each leaves the list once its circle is cut."""


def graph_of(root: Path, packages: tuple[str, ...] = PACKAGES) -> Graph:
    """Return which modules of the packages below `root` import which others of them."""
    files = {
        _name(path.relative_to(root)): path
        for package in packages
        for path in (root / package).rglob("*.py")
    }
    names = files.keys()
    return {
        name: {each for each in _imported(path, names) if each != name}
        for name, path in files.items()
    }


def _name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, names: AbstractSet[str]) -> Iterator[str]:
    """Yield what a file imports, wherever in it; a package only where none of its modules is."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                if module in names:
                    yield module
                elif node.module in names:
                    yield node.module


def circles(graph: Graph) -> list[list[str]]:
    """Return the modules of each circle: those that reach one another, sorted."""
    left = _without_ends(graph)
    reached = {name: _reached(left, name) for name in left}
    groups = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in left
        if name in reached[name]
    }
    return sorted(sorted(group) for group in groups)


def _without_ends(graph: Graph) -> Graph:
    """Return the graph without modules that import nothing or that nothing imports."""
    left = {name: set(imported) for name, imported in graph.items()}
    while True:
        imported = set[str]().union(*left.values())
        stays = {name for name, below in left.items() if below and name in imported}
        if len(stays) == len(left):
            return left
        left = {name: left[name] & stays for name in stays}


def _reached(graph: Graph, start: str) -> set[str]:
    """Return what a module imports, directly or by way of others."""
    reached = set[str]()
    waiting = deque([start])
    while waiting:
        new = graph[waiting.popleft()] - reached
        reached |= new
        waiting.extend(new)
    return reached


def shortest(graph: Graph, circle: list[str]) -> list[str]:
    """Return the shortest way from a module of the circle to itself, both ends named."""
    return min((_way_back(graph, name) for name in circle), key=len)


def _way_back(graph: Graph, start: str) -> list[str]:
    ways = deque([[start]])
    seen = set[str]()
    while ways:
        way = ways.popleft()
        for name in sorted(graph[way[-1]] - seen):
            if name == start:
                return [*way, start]
            seen.add(name)
            ways.append([*way, name])
    raise ValueError(f"{start} lies on no circle")


def complaints(graph: Graph, known: AbstractSet[str] = KNOWN) -> Iterator[str]:
    """Yield what is wrong: each circle that isn't known, and what is known and on none any more."""
    found = circles(graph)
    for circle in found:
        new = [name for name in circle if name not in known]
        if new:
            way = " -> ".join(shortest(graph, circle))
            yield f"circle of {len(circle)} modules: {way}\n  " + "\n  ".join(new)
    for name in sorted(known - {name for circle in found for name in circle}):
        yield f"{name} lies on no circle: take it from KNOWN in scripts/import_circles.py"


def main() -> None:
    """Print what is wrong, and end with status 1 where anything is."""
    graph = graph_of(ROOT)
    wrong = list(complaints(graph))
    print(*wrong, sep="\n", file=sys.stderr, end="\n" if wrong else "")
    if wrong:
        raise SystemExit(1)
    print(f"no circle among {len(graph)} modules, beside {len(KNOWN)} that are known")


if __name__ == "__main__":
    main()
