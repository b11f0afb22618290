"""How fast one node works just now, of what the leader tells of running phases.

Pure. Owns the sums. Doesn't trust the rows: they come from another node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NodeSpeed:
    """What is known of it; None where nothing is."""

    tokens_per_s: float | None = None
    """Of all its ranks and generators together."""
    step_lag: int | None = None
    """By how many steps the slowest of its ranks is behind the foremost rank of its gang."""


def speed_of(node: str, running: Iterable[Mapping[str, Any]]) -> NodeSpeed:
    """Return how fast a node is, of the leader's telemetry of every running phase."""
    own = [seat for live in running for seat in _seats(live) if seat.get("node") == node]
    speeds = list(_numbers(own, "tokens_per_s"))
    lags = list(_numbers(own, "step_lag"))
    return NodeSpeed(round(sum(speeds), 1) if speeds else None, int(max(lags)) if lags else None)


def _seats(live: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield who trains or generates in a phase, and who writes ahead beside it."""
    for rows in (live.get("gang"), live.get("ahead")):
        if isinstance(rows, list):
            yield from (row for row in rows if isinstance(row, Mapping))


def _numbers(seats: Sequence[Mapping[str, Any]], name: str) -> Iterator[float]:
    for seat in seats:
        value = seat.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield value
