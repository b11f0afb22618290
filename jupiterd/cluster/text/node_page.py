"""One machine as a page of text; jupiterctl and the dashboard show the same.

Pure. Owns the form. Doesn't know where the document comes from: lines that are too long go on in
the next.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from jupiterd.cluster.text.hardware_words import hardware
from jupiterd.cluster.text.serving_words import serving_words
from jupiterd.cluster.text.sparkline import sparkline
from jupiterd.formats import MISSING, duration, plain, rate, size, table
from jupiterd.ids import short

COLUMNS: Final = 80
SPARK_COLUMNS: Final = 28
SHOWN_LOG_LINES: Final = 20
"""All that are known are in the JSON."""

LABEL_COLUMNS: Final = 11

Row = Mapping[str, Any]
Write = Callable[[float], str]


def _percent(value: float) -> str:
    return f"{value:.1f} %"


def _degrees(value: float) -> str:
    return f"{value:.0f} C"


def _watts(value: float) -> str:
    return f"{value:.0f} W"


def _milliseconds(value: float) -> str:
    return f"{value * 1000:.1f} ms"


def _steps(value: float) -> str:
    return f"{value:.0f}"


_SERIES: Final[Mapping[str, tuple[str, Write, float | None]]] = {
    "cpu_percent": ("CPU", _percent, 100.0),
    "cpu_temperature_celsius": ("CPU heat", _degrees, None),
    "ram_percent": ("RAM", _percent, 100.0),
    "process_bytes": ("RAM process", size, None),
    "disk_free_bytes": ("disk free", size, None),
    "loop_lag_s": ("loop lag", _milliseconds, None),
    "tokens_per_s": ("tokens", rate, None),
    "step_lag": ("steps behind", _steps, None),
    "rtt_s": ("round trip", _milliseconds, None),
}
_GPU_SERIES: Final[Mapping[str, tuple[str, Write, float | None]]] = {
    "utilization_percent": ("", _percent, 100.0),
    "memory_used_bytes": (" memory", size, None),
    "temperature_celsius": (" heat", _degrees, None),
    "power_watts": (" power", _watts, None),
}
"""Name -> what people call it, how it is written, and where its bars end."""


def page(document: Row, *, draws: bool, columns: int = COLUMNS) -> list[str]:
    """Return the lines; draws: the terminal can show bars."""
    node: Row = document.get("node") or {}
    found = [
        _title(node),
        *_facts(document, node),
        "",
        *_minutes(document, draws=draws),
        *_links(node),
        *_log(document),
    ]
    return [part for line in found for part in _wrapped(line, columns)]


def _title(node: Row) -> str:
    name, state = plain(node.get("name")), plain(node.get("state"))
    heard_s = node.get("last_heard_s")
    since = f", last heard {duration(heard_s)} ago" if state != "alive" and heard_s else ""
    return f"{name} ({short(str(node.get('id')))}), {state}{since}"


def _facts(document: Row, node: Row) -> Iterator[str]:
    machine: Row = node.get("hardware") or {}
    yield _fact("role", f"{plain(node.get('role'))}: {plain(node.get('reason'))}")
    yield _fact("hardware", hardware(machine))
    yield _fact("system", " ".join(plain(machine.get(key)) for key in ("system", "machine", "cpu")))
    versions: Row = document.get("versions") or {}
    listed = ", ".join(f"{plain(name)} {plain(value)}" for name, value in versions.items())
    yield _fact("versions", listed or _unknown(document))
    yield _fact("addresses", ", ".join(map(plain, node.get("addresses") or ())) or MISSING)
    if serves := serving_words(node.get("serving") or ()):
        yield _fact("serves", serves)
    yield from _works(document)


def _works(document: Row) -> Iterator[str]:
    seats: Sequence[Row] = document.get("seats") or ()
    processes: Sequence[Row] | None = document.get("processes")
    yield from (_fact("work" * (not place), _seat(seat)) for place, seat in enumerate(seats))
    if processes is None:
        yield _fact("processes", _unknown(document))
        return
    if not seats and not processes:
        yield _fact("work", "none")
    for place, row in enumerate(processes):
        attempt = f", attempt {row['epoch']}" if row.get("epoch") else ""
        text = f"{plain(row.get('task'))} {plain(row.get('id'))}{attempt}"
        yield _fact("processes" * (not place), text)


def _seat(seat: Row) -> str:
    parts = [f"round {plain(seat.get('round'))}, {plain(seat.get('phase'))}"]
    if seat.get("rank") is not None:
        parts.append(f"rank {plain(seat['rank'])} on {plain(seat.get('device'))}")
    if seat.get("step") is not None:
        parts.append(f"step {plain(seat['step'])} ({plain(seat.get('step_lag'))} behind)")
    if isinstance(speed := seat.get("tokens_per_s"), int | float):
        parts.append(f"{rate(speed).removesuffix('/s')} tokens/s")
    return ", ".join(parts)


def _unknown(document: Row) -> str:
    return f"{MISSING}: {plain(document['note'])}" if document.get("note") else MISSING


def _fact(label: str, text: str) -> str:
    return f"{label:<{LABEL_COLUMNS}}{text}"


def _minutes(document: Row, *, draws: bool) -> list[str]:
    """Return the last ten minutes of everything that is known, one row each."""
    history: Row = document.get("history") or {}
    recent: Row = document.get("recent") or {}
    rows = list(_rows(_SERIES, "", history, recent, draws=draws))
    for place, gpus in enumerate(_pairs(history, recent)):
        rows += _rows(_GPU_SERIES, f"GPU {place}", *gpus, draws=draws)
    if not rows:
        return ["nothing has been heard of it in the last ten minutes"]
    headers = ("LAST TEN MINUTES", "NOW", "LEAST", "MOST", *[""] * draws)
    return table(headers, rows)


def _pairs(history: Row, recent: Row) -> list[tuple[Row, Row]]:
    before, since = list(history.get("gpus") or ()), list(recent.get("gpus") or ())
    count = max(len(before), len(since))
    return list(
        zip(before + [{}] * (count - len(before)), since + [{}] * (count - len(since)), strict=True)
    )


def _rows(
    series: Mapping[str, tuple[str, Write, float | None]],
    whose: str,
    history: Row,
    recent: Row,
    *,
    draws: bool,
) -> Iterator[tuple[str, ...]]:
    for name, (label, write, top) in series.items():
        values = [*_values(history, name), *_values(recent, name)]
        known = [value for value in values if value is not None]
        if known:
            now = values[-1]
            figures = (MISSING if now is None else write(now), write(min(known)), write(max(known)))
            bars = (sparkline(values, SPARK_COLUMNS, top),) if draws else ()
            yield (whose + label, *figures, *bars)


def _values(part: Row, name: str) -> Sequence[float | None]:
    """Return a series of a part; one that isn't known at all is told as None."""
    return part.get(name) or [None] * int(part.get("points", 0))


def _links(node: Row) -> list[str]:
    links: Sequence[Row] = node.get("links") or ()
    rows = [
        (
            link.get("target"),
            link.get("kind"),
            None if link.get("rtt_ms") is None else f"{link['rtt_ms']:.1f} ms",
            "in use" if link.get("active") else "spare" if link.get("answers") else "silent",
        )
        for link in links
    ]
    return ["", *table(("LINK", "KIND", "RTT", "NOTE"), rows)] if rows else []


def _log(document: Row) -> list[str]:
    lines: Sequence[str] | None = document.get("log")
    if lines is None:
        return ["", f"log        {_unknown(document)}"]
    return ["", "log", *(f"  {plain(line)}" for line in lines[-SHOWN_LOG_LINES:])] if lines else []


def _wrapped(line: str, columns: int) -> list[str]:
    """Return a line as it is, or in pieces of so many columns; what goes on is set in."""
    if len(line) <= columns:
        return [line]
    return wrap(line, columns, subsequent_indent=" " * LABEL_COLUMNS, break_on_hyphens=False)
