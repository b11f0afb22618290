"""The load of each machine: the blocks and the document of `jupiterctl monitor`.

Pure. Owns the format of the blocks and the document's keys. Doesn't know where the readings come
from, or the clock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jupiterd.formats import MISSING, duration, plain
from jupiterd.ids import short

GIB = 1 << 30
"""Bytes of one GB in the blocks: a GiB."""

Row = Mapping[str, Any]

_SILENT = frozenset({"gone", "suspect"})
"""States of nodes whose last report is out of date."""


def node_rows(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each member of a status document."""
    return [_row(node) for node in status.get("nodes", []) if node.get("state") != "pending"]


def local_row(
    name: str, hardware: Row, load: Row, gpu_loads: Sequence[Row], process_bytes: int | None
) -> dict[str, Any]:
    """Return the row of a machine that was measured without a daemon."""
    current = dict(load) | ({} if process_bytes is None else {"process_bytes": process_bytes})
    node = {"id": None, "name": name, "state": "no daemon", "hardware": hardware}
    return _row(node | {"load": current, "gpu_loads": gpu_loads})


def block_lines(rows: Sequence[Row], stamp: str) -> list[str]:
    """Return a block for each row, with the machine's name above it if there are several rows."""
    if len(rows) == 1:
        return _block(rows[0], stamp)
    return [line for row in rows for line in (_title(row), *_block(row, stamp), "")]


def _row(node: Row) -> dict[str, Any]:
    hardware: Row = node.get("hardware") or {}
    is_silent = node.get("state") in _SILENT
    load: Row = {} if is_silent else node.get("load") or {}
    loads: Sequence[Row] = () if is_silent else node.get("gpu_loads") or ()
    return {
        "id": node.get("id"),
        "name": node.get("name"),
        "state": node.get("state"),
        "last_heard_s": node.get("last_heard_s"),
        "cpu_percent": load.get("cpu_percent"),
        "ram_percent": load.get("ram_percent"),
        "ram_used_bytes": _used_bytes(load, hardware),
        "ram_bytes": load.get("ram_bytes") or hardware.get("ram_bytes"),
        "process_bytes": load.get("process_bytes"),
        "gpus": [
            _gpu(index, gpu, loads[index] if index < len(loads) else {})
            for index, gpu in enumerate(hardware.get("gpus", ()))
        ],
    }


def _used_bytes(load: Row, hardware: Row) -> int | None:
    """Return the memory in use, in bytes; nodes of an older version report only its percentage."""
    if (used := load.get("ram_used_bytes")) is not None:
        return int(used)
    percent, total = load.get("ram_percent"), hardware.get("ram_bytes")
    return None if percent is None or not total else round(total * percent / 100)


def _gpu(index: int, gpu: Row, load: Row) -> dict[str, Any]:
    return {
        "index": index,
        "name": gpu.get("name"),
        "utilization_percent": load.get("utilization_percent"),
        "memory_used_bytes": load.get("memory_used_bytes"),
        "memory_bytes": gpu.get("memory_bytes") or None,
        "temperature_celsius": load.get("temperature_celsius"),
        "power_watts": load.get("power_watts"),
    }


def _title(row: Row) -> str:
    name, state, heard_s = plain(row["name"]), row["state"], row["last_heard_s"]
    when = f", last heard {duration(heard_s)} ago" if state in _SILENT and heard_s else ""
    return f"{name} ({short(str(row['id']))}), {plain(state)}{when}"


def _block(row: Row, stamp: str) -> list[str]:
    used, total = _gigabytes(row["ram_used_bytes"]), _gigabytes(row["ram_bytes"])
    parts = (
        f"[{stamp}] CPU: {_percent(row['cpu_percent'], 1)}",
        f"RAM: {_percent(row['ram_percent'], 1)} ({used} / {total})",
        f"RAM process: {_gigabytes(row['process_bytes'])}",
    )
    return [" | ".join(parts), *map(_gpu_line, row["gpus"])]


def _gpu_line(gpu: Row) -> str:
    used, total = _gigabytes(gpu["memory_used_bytes"]), _gigabytes(gpu["memory_bytes"])
    return (
        f"- GPU {gpu['index']} ({plain(gpu['name'])})"
        f" | Utilization: {_percent(gpu['utilization_percent'], 0)} | Memory: {used} / {total}"
    )


def _percent(value: float | None, digits: int) -> str:
    return MISSING if value is None else f"{value:.{digits}f}%"


def _gigabytes(value: int | None) -> str:
    return MISSING if value is None else f"{value / GIB:.1f} GB"
