"""The description of a launch before it runs, as lines for people and as a document.

Owns both. Doesn't know how their content was determined. Neither holds the values of variables that
were given with `--env`, because they may be secrets.
"""

import shlex
from collections.abc import Iterator
from typing import Any

from jupiterd.ctl.launch.machines import (
    nearby_differences,
    variable_differences,
    version_differences,
)
from jupiterd.ctl.launch.places import Prepared
from jupiterd.ctl.launch.shipping import ship_lines
from jupiterd.document_schema import SCHEMA
from jupiterd.formats import counted, plain
from jupiterd.processes.script_plan import MachinePart

NOTHING = "nothing was started"


def notices(prepared: Prepared) -> Iterator[str]:
    """Yield the lines that are printed before the first rank's output."""
    wanted = prepared.wanted
    yield f"engine: {_engine(prepared)}"
    if wanted.interpreter is not None:
        yield f"python: {_python(prepared)}"
    yield from _differences(prepared)


def dry_run_lines(prepared: Prepared) -> list[str]:
    """Return the lines of a dry run: what would run, where, and in which environment."""
    wanted = prepared.wanted
    given = ", ".join(map(plain, wanted.variables)) or "none"
    own = len(wanted.files)
    lines = [
        f"would run {plain(shlex.join(wanted.argv))}",
        f"  engine: {_engine(prepared)}",
        f"  python: {_python(prepared)}",
        f"  folder: {plain(str(wanted.folder))}, {counted(own, 'file')} of it imported",
        f"  variables for all: {given}",
        *(f"  {line}" for line in ship_lines(prepared)),
        *(f"  {line}" for line in _rank_lines(prepared)),
        *_differences(prepared),
    ]
    return [*lines, NOTHING]


def launch_document(prepared: Prepared) -> dict[str, Any]:
    """Return the same as a document for programs."""
    wanted = prepared.wanted
    return {
        "schema": SCHEMA,
        "launch": {
            "command": list(wanted.argv),
            "engine": wanted.engine.engine,
            "engine_reason": wanted.engine.reason,
            "python": None if wanted.interpreter is None else wanted.interpreter.path,
            "python_reason": None if wanted.interpreter is None else wanted.interpreter.reason,
            "folder": str(wanted.folder),
            "files": list(wanted.files),
            "ships": None
            if wanted.travelling is None
            else {
                "files": len(wanted.travelling.sizes),
                "bytes": wanted.travelling.size_bytes,
                "left_out": list(wanted.travelling.left_out),
            },
            "variables": sorted(wanted.variables),
            "nodes": [*_nodes(prepared)],
            "differences": [*_differences(prepared)],
        },
    }


def _differences(prepared: Prepared) -> Iterator[str]:
    yield from nearby_differences(prepared.wanted, prepared.machines)
    yield from version_differences(prepared.machines)
    yield from variable_differences(prepared.wanted, prepared.machines)


def _nodes(prepared: Prepared) -> Iterator[dict[str, Any]]:
    for place, machine, order in zip(
        prepared.places, prepared.machines, prepared.orders, strict=True
    ):
        yield {
            "node": place.node or None,
            "name": place.name,
            "host": place.host,
            "interface": place.interface,
            "folder": _folder(prepared, place) or None,
            "program": order.argv[0],
            "versions": dict(machine.versions),
            "devices": place.visible_devices,
            "ranks": [rank.rank for rank in order.ranks],
        }


def _rank_lines(prepared: Prepared) -> Iterator[str]:
    for row in _nodes(prepared):
        ranks = ", ".join(map(str, row["ranks"]))
        versions = ", ".join(f"{name} {version}" for name, version in row["versions"].items())
        parts = [f"{'rank' if len(row['ranks']) == 1 else 'ranks'} {ranks} on {row['name']}"]
        parts += [f"{row['host']} ({row['interface']})", str(row["program"])]
        parts += [versions] if versions else []
        parts += [f"in {row['folder']}" if row["folder"] else "in a folder of its own"]
        if row["devices"] is not None:
            parts.append(f"CUDA devices {row['devices']}" if row["devices"] else "no GPU")
        yield plain("; ".join(parts))


def _folder(prepared: Prepared, place: MachinePart) -> str:
    """Return the folder in which the script runs on a machine; empty: a new one is made for it."""
    if prepared.wanted.travelling is not None and place.node != prepared.own:
        return place.folder  # empty until the folder was sent
    return place.folder or str(prepared.wanted.folder)


def _engine(prepared: Prepared) -> str:
    guess = prepared.wanted.engine
    return plain(f"{guess.engine} ({guess.reason})")


def _python(prepared: Prepared) -> str:
    found = prepared.wanted.interpreter
    if found is None:
        return "the program finds its own"
    is_several = found.is_own and len(prepared.places) > 1
    path = "the one that runs Jupiter on each machine" if is_several else found.path
    return plain(f"{path} ({found.reason})")
