"""Telemetry as a heartbeat carries it: never larger than others take it.

Owns what is dropped first. What is too large is refused whole, and then others would go on showing
what they heard last. Doesn't know where the readings come from, or how they are read (`telemetry`).
"""

import math
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, cast

import msgpack

from jupiterd.cluster.links.unreached import UNREACHED
from jupiterd.cluster.serving.serving_rows import SERVING
from jupiterd.daemon.leader.progress_board import RANKS_PROGRESS
from jupiterd.daemon.runtime.telemetry import MAX_TELEMETRY_BYTES

Plain = dict[str, Any]


@dataclass(frozen=True)
class LimitedTelemetry:
    """The packed telemetry, and what had to be left out of it."""

    raw: bytes
    left_out: tuple[str, ...] = ()


def short_telemetry(telemetry: Plain) -> LimitedTelemetry:
    """Return telemetry for a heartbeat, without its least important parts where it is too large."""
    telemetry = _with_numbers(telemetry)
    raw = cast("bytes", msgpack.packb(telemetry))
    left_out: list[str] = []
    for name, shorten in _LESS.items():
        if len(raw) <= MAX_TELEMETRY_BYTES:
            break
        telemetry = shorten(telemetry)
        raw = cast("bytes", msgpack.packb(telemetry))
        left_out.append(name)
    return LimitedTelemetry(raw, tuple(left_out))


def _with_numbers(telemetry: Plain) -> Plain:
    """Return it without readings that are no numbers: others refuse the whole for one of them."""
    if "live" not in telemetry:
        return telemetry
    live = [
        row | {"values": _numbers(row["values"])} if "values" in row else row
        for row in telemetry["live"]
    ]
    return telemetry | {"live": live}


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


def _without(plain: Mapping[str, Any], names: AbstractSet[str]) -> Plain:
    return {name: value for name, value in plain.items() if name not in names}


def _with_seats(telemetry: Plain, become: Callable[[list[Plain]], list[Plain]]) -> Plain:
    live = [row | {"gang": become(row.get("gang", []))} for row in telemetry.get("live", [])]
    return telemetry | {"live": live}


_LESS: Mapping[str, Callable[[Plain], Plain]] = {
    "who waits": lambda telemetry: _without(telemetry, {"waiting", UNREACHED}),  # strangers, both
    "accelerators": lambda telemetry: _without(telemetry, {"gpus"}),
    "steps of ranks": lambda telemetry: _with_seats(
        telemetry, lambda seats: [_without(seat, RANKS_PROGRESS) for seat in seats]
    ),
    "ranks": lambda telemetry: _with_seats(telemetry, lambda _: []),
    "models served": lambda telemetry: _without(telemetry, {SERVING}),
    "running phases": lambda telemetry: _without(telemetry, {"live"}),
    "everything": lambda _: {},
}
"""What is left out, in this order, until the rest is small enough."""
