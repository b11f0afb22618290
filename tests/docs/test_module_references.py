"""Docstrings and comments name modules that are there, by enough of their path to be found."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = re.compile(r"`([a-z_]+(?:\.[a-z_0-9]+)+)`")
VERBS = {"cycle.start"}
"""What reads like a module and is a command to the daemon."""


def modules() -> dict[str, bool]:
    """Return every module's dotted path, and whether it is a package."""
    files = [path for name in ("jupiterd", "jupiter_tui") for path in (ROOT / name).rglob("*.py")]
    return {
        ".".join(_parts(path)): path.name == "__init__.py"
        for path in files
        if "__pycache__" not in path.parts
    }


def _parts(path: Path) -> tuple[str, ...]:
    relative = path.relative_to(ROOT)
    return relative.parent.parts if path.name == "__init__.py" else relative.with_suffix("").parts


def suffixes(dotted: str) -> Iterator[str]:
    """Yield a path and all its ends."""
    parts = dotted.split(".")
    return (".".join(parts[start:]) for start in range(len(parts)))


def test_every_dotted_name_that_begins_with_a_package_leads_to_a_module_or_into_one() -> None:
    known = modules()
    ends = {end for name in known for end in suffixes(name)}
    into = {end for name, is_package in known.items() if not is_package for end in suffixes(name)}
    packages = {name.split(".")[1] for name in known if "." in name} | {"jupiterd", "jupiter_tui"}
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for root in ("jupiterd", "jupiter_tui")
        for path in sorted((ROOT / root).rglob("*.py"))
        for name in REFERENCE.findall(path.read_text(encoding="utf-8"))
        if name.split(".")[0] in packages
        and name not in ends | VERBS
        and name.rpartition(".")[0] not in into
    ]
    assert lost == []
