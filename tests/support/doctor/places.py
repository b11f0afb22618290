"""Machines as checks are told of them."""

from pathlib import Path
from typing import Any

from jupiterd.doctor.place import Place

ALPHA, BETA = "a1" * 16, "b2" * 16
VERSIONS = {"jupiterd": "0.1.0", "torch": "2.13.0+cpu", "mlx": "0.32.4"}


def node(identity: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a row of a status document."""
    empty = {"state": "alive", "addresses": [], "links": [], "hardware": {"versions": VERSIONS}}
    return {"id": identity, "name": name} | empty | more


def place(*nodes: dict[str, Any], health: tuple[dict[str, str], ...] = (), **more: Any) -> Place:
    """Return a machine called alpha whose daemon runs, among these others."""
    status = {
        "node": {"id": ALPHA, "name": "alpha"},
        "nodes": [node(ALPHA, "alpha"), *nodes],
        "health": list(health),
    }
    told = {"state_dir": Path("/state"), "port": 47470, "status": status}
    return Place(**(told | more))
