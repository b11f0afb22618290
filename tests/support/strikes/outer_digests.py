"""What ranks of islands have said of their weights after each outer step.

Owns reading that from a node's logs. Doesn't know which steps count.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.support.daemons.cluster import Daemon

TAKEN = re.compile(r"Outer step (\d+) \((\w+)\) \| .*Digest ([0-9a-f]{64})")


def taken_by_ranks(daemon: Daemon) -> list[list[tuple[int, str, str]]]:
    """Return what each rank has taken, one after another: number, name and digest of each."""
    return [_taken(log) for log in sorted((daemon.state_dir / "logs").glob("*train*.log"))]


def _taken(log: Path) -> list[tuple[int, str, str]]:
    found = TAKEN.findall(log.read_text(errors="replace"))
    return [(int(number), name, digest) for number, name, digest in found]


def digests(*daemons: Daemon) -> Mapping[str, set[str]]:
    """Return the digests after each outer step, by its name: one, where all had equal weights."""
    found: dict[str, set[str]] = {}
    for _, name, digest in _all(daemons):
        found.setdefault(name, set()).add(digest)
    return found


def _all(daemons: Iterable[Daemon]) -> Iterable[tuple[int, str, str]]:
    return (each for daemon in daemons for rank in taken_by_ranks(daemon) for each in rank)
