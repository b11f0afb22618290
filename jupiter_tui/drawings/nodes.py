"""The table of nodes.

Pure. Owns its columns, and what is said where there is no other node. Doesn't know where a
document comes from.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiter_tui.drawings.primitives.columns import Column, Row, listed
from jupiter_tui.drawings.primitives.lines import Cell, Lines, Tone, line, wrapped
from jupiter_tui.drawings.primitives.listing import Choice, Listing
from jupiter_tui.drawings.primitives.thresholds import (
    NODE_TONES,
    NOTHING,
    RAM_BAD_PERCENT,
    RAM_WARN_PERCENT,
    age,
    heat_tone,
    percent,
)
from jupiter_tui.model.scene import Scene
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.formats import plain

COLUMNS = (
    Column("name", "  NAME", 16, 0, grows=True),
    Column("state", "STATE", 7, 1),
    Column("role", "ROLE", 9, 2),
    Column("cpu", "CPU", 5, 5, is_right=True),
    Column("ram", "RAM", 5, 6, is_right=True),
    Column("device", "DEVICE", 12, 10),
    Column("gpu", "GPU", 5, 4, is_right=True),
    Column("vram", "VRAM", 5, 11, is_right=True),
    Column("heat", "TEMP", 4, 12, is_right=True),
    Column("watts", "W", 4, 13, is_right=True),
    Column("tokens", "TOK/S", 6, 9, is_right=True),
    Column("lag", "LAG", 4, 7, is_right=True),
    Column("rtt", "RTT", 7, 8, is_right=True),
    Column("seen", "SEEN", 6, 3),
    Column("reason", "WHY THIS ROLE", 24, 14, grows=True),
)

LEGEND = "* leads the cluster; LAG: steps behind the gang; enter shows a node"

ALONE = (
    "no other node found yet; what to check:",
    "  - does jupiterd run on the other machine, and with a name or address that is its own?",
    "  - are both in the same network? name one to the other with: jupiterd --peer HOST:PORT",
    "  - does a firewall let UDP port 5353 (mDNS) and jupiterd's own TCP port through?",
    "  - macOS: System Settings, Privacy & Security, Local Network must allow the terminal",
)
"""Shown as long as a node knows nobody but itself."""

_MAKERS = ("NVIDIA ", "GeForce ", "Apple ")


SORTS = ("state", "role", "cpu", "last seen")


def nodes(scene: Scene, choice: Choice, width: int) -> Listing:
    """Return the table, and what to check where it has one row."""
    document = scene.view.document
    if not document:
        return Listing((), (), (line("nothing heard yet", Tone.FAINT),))
    members = sorted(document.get("nodes", ()), key=lambda node: _order(node, choice.sort))
    leader = (document.get("cluster") or {}).get("leader")
    own = (document.get("node") or {}).get("id")
    rows = {str(node.get("id")): _row(node, leader, own) for node in members}
    others = () if len(members) > 1 or _keeps_to_itself(document) else (line(""), *_alone(width))
    return listed(COLUMNS, rows, width, foot=others)


def _keeps_to_itself(document: Mapping[str, Any]) -> bool:
    """Say whether it doesn't look for other machines; health has that, and the setting for it."""
    return any(row.get("code") == "alone-locally" for row in document.get("health") or ())


def _alone(width: int) -> Lines:
    return tuple(line(part) for each in ALONE for part in wrapped(each, width, "    "))


def _order(node: Mapping[str, Any], sort: str) -> tuple[Any, ...]:
    """Return the sort key of a node; nodes that are equal in it are sorted by name."""
    load = node.get("load") or {}
    places: Mapping[str, Any] = {
        "state": plain(node.get("state")),
        "role": plain(node.get("role")),
        "cpu": -(load.get("cpu_percent") or 0.0),
        "last seen": -(node.get("last_heard_s") or 0.0),
    }
    return places.get(sort, ""), plain(node.get("name"))


def gpu_words(hardware: Mapping[str, Any] | None) -> str | None:
    """Return the accelerators in a word or two, such as `2 x RTX 4090`; None without any."""
    names = [_model(gpu) for gpu in (hardware or {}).get("gpus", ())]
    counted = [
        name if names.count(name) == 1 else f"{names.count(name)} x {name}"
        for name in dict.fromkeys(names)
    ]
    return ", ".join(counted) or None


def _model(gpu: Mapping[str, Any]) -> str:
    """Return a model's name without its maker's."""
    name = plain(gpu.get("name"))
    for maker in _MAKERS:
        name = name.removeprefix(maker)
    return name


def _row(node: Mapping[str, Any], leader: str | None, own: str | None) -> Row:
    state = plain(node.get("state"))
    is_here = node.get("id") == own
    here, leads = " (here)" * is_here, "* " if node.get("id") == leader else "  "
    # The last report of a node that is gone is no longer true.
    current: Mapping[str, Any] = node if state != Liveness.GONE else {}
    load: Mapping[str, Any] = current.get("load") or {}
    lag = current.get("step_lag")
    return {
        "name": Cell(leads + plain(node.get("name")) + here, Tone.STRONG),
        "state": Cell(state, NODE_TONES.get(state, Tone.NOTE)),
        "role": _word(node.get("role")),
        "cpu": percent(load.get("cpu_percent")),
        "ram": percent(load.get("ram_percent"), warn=RAM_WARN_PERCENT, bad=RAM_BAD_PERCENT),
        "device": _word(gpu_words(node.get("hardware"))),
        **_gpus(current),
        "tokens": _number(current.get("tokens_per_s"), "{:,.0f}"),
        "lag": _number(lag, "{:.0f}", Tone.WARN if lag else Tone.NORMAL),
        "rtt": _number(current.get("rtt_s"), "{:.1f} ms", factor=1000.0),
        "seen": age(node.get("last_heard_s")),
        "reason": _word(node.get("reason")),
    }


def _gpus(node: Mapping[str, Any]) -> Row:
    """Return what the accelerators do: the busiest and hottest of them, and all their watts."""
    loads: Sequence[Mapping[str, Any]] = node.get("gpu_loads") or ()
    sizes = [gpu.get("memory_bytes") for gpu in (node.get("hardware") or {}).get("gpus", ())]
    used = _known(loads, "memory_used_bytes")
    room = sum(sizes) if sizes and all(sizes) else 0
    heat = max(_known(loads, "temperature_celsius"), default=None)
    watts = _known(loads, "power_watts")
    return {
        "gpu": percent(max(_known(loads, "utilization_percent"), default=None)),
        "vram": percent(100 * sum(used) / room if used and room else None,
                        warn=RAM_WARN_PERCENT, bad=RAM_BAD_PERCENT),
        "heat": _number(heat, "{:.0f} C", heat_tone(heat)),
        "watts": _number(sum(watts) if watts else None, "{:.0f}"),
    }  # fmt: skip


def _known(loads: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    return [float(load[key]) for load in loads if load.get(key) is not None]


def _number(value: float | None, form: str, tone: Tone = Tone.NORMAL, factor: float = 1.0) -> Cell:
    return NOTHING if value is None else Cell(form.format(factor * value), tone)


def _word(value: object) -> Cell:
    return Cell(plain(value)) if value else NOTHING
