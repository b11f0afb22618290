"""Machines to examine in tests."""

from pathlib import Path
from typing import Any

from jupiterd.doctor.examined_machine import ExaminedMachine

ALPHA, BETA = "a1" * 16, "b2" * 16
VERSIONS = {"jupiterd": "0.1.0", "torch": "2.13.0+cpu", "mlx": "0.32.4"}


def node(identity: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a row of a status document."""
    empty = {"state": "alive", "addresses": [], "links": [], "hardware": {"versions": VERSIONS}}
    return {"id": identity, "name": name} | empty | more


def machine(
    *nodes: dict[str, Any], health: tuple[dict[str, str], ...] = (), **more: Any
) -> ExaminedMachine:
    """Return a machine called alpha whose daemon runs, among these others."""
    status = {
        "node": {"id": ALPHA, "name": "alpha"},
        "nodes": [node(ALPHA, "alpha"), *nodes],
        "health": list(health),
    }
    usual = {"state_dir": Path("/state"), "port": 47470, "status": status}
    return ExaminedMachine(**(usual | more))
