"""Telemetry as a heartbeat carries it: never larger than others take it.

Owns what gives way first. What is too large is refused whole, and then others would go on showing
what they heard last. Doesn't know where the readings come from, or how they are read (`telemetry`).
"""

import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

import msgpack

from jupiterd.cluster.links.unreached import UNREACHED
from jupiterd.daemon.leader.progress_board import RANKS_PROGRESS
from jupiterd.daemon.runtime.telemetry import MAX_TOLD_BYTES

Plain = dict[str, Any]


@dataclass(frozen=True)
class LimitedTelemetry:
    """What is told, and what had to be left out of it."""

    raw: bytes
    left_out: tuple[str, ...] = ()


def short_telemetry(told: Plain) -> LimitedTelemetry:
    """Return telemetry for a heartbeat; what could be missed most easily gives way to the rest."""
    told = _with_numbers(told)
    raw = cast("bytes", msgpack.packb(told))
    left_out: list[str] = []
    for name, shorten in _LESS.items():
        if len(raw) <= MAX_TOLD_BYTES:
            break
        told = shorten(told)
        raw = cast("bytes", msgpack.packb(told))
        left_out.append(name)
    return LimitedTelemetry(raw, tuple(left_out))


def _with_numbers(told: Plain) -> Plain:
    """Return it without readings that are no numbers: others refuse the whole for one of them."""
    if "live" not in told:
        return told
    live = [
        row | {"values": _numbers(row["values"])} if "values" in row else row
        for row in told["live"]
    ]
    return told | {"live": live}


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _without(plain: Mapping[str, Any], names: AbstractSet[str]) -> Plain:
    return {name: value for name, value in plain.items() if name not in names}


def _with_seats(told: Plain, become: Callable[[list[Plain]], list[Plain]]) -> Plain:
    live = [row | {"gang": become(row.get("gang", []))} for row in told.get("live", [])]
    return told | {"live": live}


_LESS: Mapping[str, Callable[[Plain], Plain]] = {
    "who waits": lambda told: _without(told, {"waiting", UNREACHED}),  # strangers, both
    "accelerators": lambda told: _without(told, {"gpus"}),
    "steps of ranks": lambda told: _with_seats(
        told, lambda seats: [_without(seat, RANKS_PROGRESS) for seat in seats]
    ),
    "ranks": lambda told: _with_seats(told, lambda _: []),
    "running phases": lambda told: _without(told, {"live"}),
    "everything": lambda _: {},
}
"""What is left out, in this order, until the rest is small enough."""
