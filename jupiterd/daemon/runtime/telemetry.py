"""A member's telemetry from its heartbeats (load, running work), validated before use.

Owns what that must look like: status is made of it, and one member mustn't break everybody's.
Doesn't know what is shown of it; keys that others read (`pending_joins`, `door`) are theirs to
check.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgpack

from jupiterd.cluster.values.bounds import is_count, is_real
from jupiterd.cycle.base.work_item import Phase

MAX_TELEMETRY_BYTES = 20 << 10
"""Of what a peer says of itself at once: 16 nodes' 128 ranks, each with its step and speed."""
MAX_LEVELS = 8


def unpacked(packed: bytes) -> dict[str, Any]:
    """Read a map; raises ValueError or TypeError where it is none, or nothing for JSON."""
    if len(packed) > MAX_TELEMETRY_BYTES:
        raise ValueError("it is too large")
    plain = msgpack.unpackb(packed, raw=False, strict_map_key=True)
    if not isinstance(plain, dict):
        raise TypeError("it is no map")
    if not _is_sound(plain):
        raise ValueError("a number in it is none, or it is too deep")
    return cast("dict[str, Any]", plain)


def read_telemetry(packed: bytes) -> dict[str, Any]:
    """Read telemetry, without the parts that can't be meant so; raises as `unpacked` does."""
    plain = unpacked(packed)
    if not _is_load(plain.get("load", {})):
        del plain["load"]
    if "live" in plain:
        rows: object = plain["live"]
        known = cast("list[object]", rows) if isinstance(rows, list) else []
        plain["live"] = [row for row in known if _is_live(row)]
    return plain


def _is_sound(value: object, levels: int = MAX_LEVELS) -> bool:
    """Say whether every number is one, and nothing lies deeper than anybody needs."""
    match value:
        case float():
            return is_real(value)
        case int():
            return is_count(value)
        case dict():
            parts = list(cast("dict[str, object]", value).values())
        case list():
            parts = cast("list[object]", value)
        case _:
            return True
    return levels > 0 and all(_is_sound(part, levels - 1) for part in parts)


def _is_load(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        map(_is_number, cast("Mapping[str, object]", value).values())
    )


def _is_live(row: object) -> bool:
    if not isinstance(row, Mapping):
        return False
    fields = cast("Mapping[str, object]", row)
    fitting = all(name in fields and fits(fields[name]) for name, fits in _LIVE.items())
    return fitting and all(
        name not in fields or fits(fields[name]) for name, fits in _OPTIONAL.items()
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_number_or_none(value: object) -> bool:
    return value is None or _is_number(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_phase(value: object) -> bool:
    return value in list(Phase)


def _is_gang(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_seat, cast("list[object]", value)))


def _is_seat(row: object) -> bool:
    """Say whether it is a rank's or a generator's row: single values, numbers where we count."""
    if not isinstance(row, Mapping):
        return False
    fields = cast("Mapping[str, object]", row)
    fitting = all(_is_number_or_none(fields.get(name)) for name in _COUNTED)
    return fitting and all(
        _is_text(value) or _is_number_or_none(value) for value in fields.values()
    )


def _is_outer(value: object) -> bool:
    """Say whether it has the form of `island_progress`."""
    if not isinstance(value, Mapping):
        return False
    fields = cast("Mapping[str, object]", value)
    islands = fields.get("islands")
    rows = cast("list[object]", islands) if isinstance(islands, list) else [None]
    return _is_count(fields.get("number")) and all(map(_is_island, rows))


def _is_preparing(value: object) -> bool:
    """Return whether it has the form of `preparing_stage`, or is None."""
    if value is None:
        return True
    if not isinstance(value, Mapping):
        return False
    fields = cast("Mapping[str, object]", value)
    numbers = map(fields.get, ("elapsed_s", "expected_s"))
    are_text = _is_text(fields.get("stage")) and _is_text(fields.get("detail", ""))
    return are_text and all(map(_is_number_or_none, numbers))


def _is_island(row: object) -> bool:
    if not isinstance(row, Mapping):
        return False
    fields = dict(cast("Mapping[str, object]", row))
    return _is_text(fields.pop("state", None)) and all(map(_is_number, fields.values()))


_LIVE: Mapping[str, Callable[[object], bool]] = {
    "cycle": _is_text,
    "round": _is_count,
    "phase": _is_phase,
    "done": _is_number,
    "total": _is_number,
    "unit": _is_text,
    "rate": _is_number_or_none,
    "eta_s": _is_number_or_none,
    "elapsed_s": _is_number,
    "values": _is_load,
    "gang": _is_gang,
    "epoch": _is_number_or_none,
    "resumed_from_step": _is_number_or_none,
    "detail": _is_text,
}
"""Fields of a running phase in the leader's progress."""

_OPTIONAL: Mapping[str, Callable[[object], bool]] = {
    "outer": _is_outer,
    "ahead": _is_gang,
    "attempt": _is_number_or_none,
    "preparing": _is_preparing,
    "stalled_s": _is_number_or_none,
}
"""Fields that only some running phases have."""

_COUNTED = ("rank", "island", "step", "step_lag", "tokens_per_s", "accepted_per_min", "part")
"""Of a gang's rows, what is added up or compared."""
