"""A table of measured network paths to other nodes, and hints about them.

Pure. Owns the columns and the hints; doesn't know how anything was measured.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.formats import MISSING, plain, table

HEADERS = ("NODE", "INTERFACE", "KIND", "ADDRESS", "RTT", "OUT", "IN", "NOTE")

_RANKS = {kind.label: kind for kind in InterfaceKind}

Row = Mapping[str, Any]


def link_lines(document: Mapping[str, Any]) -> list[str]:
    """Return a line about which machine measured, the tables, and the hints."""
    rows = [_row(path) for path in document["paths"]]
    said = [f"hint: {hint}" for hint in document["hints"]]
    where = f"from {plain(document['from']['name'])}; * is the path in use"
    others = _other_lines(document.get("others", []))
    return [where, "", *table(HEADERS, rows), *others, *(["", *said] if said else [])]


def _other_lines(paths: Sequence[Row]) -> list[str]:
    """Return a table of the paths between other machines, if there are any."""
    if not paths:
        return []
    rows = [(plain(path["from"]["name"]), *_row(path)) for path in paths]
    return ["", "between the others", "", *table(("FROM", *HEADERS), rows)]


def hints(paths: Sequence[Row]) -> list[str]:
    """Return hints about paths that don't answer or aren't the best."""
    return [said for path in paths for said in (_silent(path), _worse(path, paths)) if said]


def _silent(path: Row) -> str:
    if path["answers"]:
        return ""
    name, address, interface = (plain(path[key]) for key in ("name", "target", "interface"))
    return f"{name} doesn't answer at {address} ({interface}): check the cable and the firewall"


def _worse(path: Row, paths: Sequence[Row]) -> str:
    """Return a hint if a path is used although a better kind answers; else an empty text."""
    if not path["active"]:
        return ""
    others = [other for other in paths if other["node"] == path["node"] and other["answers"]]
    best = min(others, key=_rank, default=path)
    if _rank(best) >= _rank(path):
        return ""
    return (
        f"{plain(path['name'])} is reached over {plain(path['kind'])} although "
        f"{plain(best['kind'])} answers at {plain(best['target'])}: within a minute that is used "
        "instead, unless it is slower or loses packets"
    )


def _rank(path: Row) -> int:
    return _RANKS.get(path["kind"], InterfaceKind.CONTAINER)


def _row(path: Row) -> tuple[object, ...]:
    return (
        f"{plain(path['name'])}{' *' if path['active'] else ''}",
        path["interface"],
        path["kind"],
        path["target"],
        _figure(path["rtt_ms"], "ms"),
        _figure(path["out_mbit_per_s"], "Mbit/s"),
        _figure(path["in_mbit_per_s"], "Mbit/s"),
        (path["note"] or "measured") if path["answers"] else "doesn't answer",
    )


def _figure(value: float | None, unit: str) -> str:
    """Return a value of at least three significant digits with its unit."""
    if value is None:
        return MISSING
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
