"""The check whether the Python that runs a script here has torch, which the ranks' store needs.

Owns that check, and finds another Python that has it. Doesn't start the store (`processes.script`);
each other machine checks its own Python.
"""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from jupiterd.ctl.launch.interpreter import ENVIRONMENTS
from jupiterd.ctl.launch.places import Prepared
from jupiterd.formats import plain
from jupiterd.processes.script import script_python
from jupiterd.processes.script_plan import ScriptOrder

TIMEOUT_S: Final = 10.0
WITHOUT: Final = 3
_FIND_TORCH: Final = f"""
import sys, importlib.util
sys.exit({WITHOUT} if importlib.util.find_spec("torch") is None else 0)
"""


def with_store(prepared: Prepared, notify: Callable[[str], None]) -> Prepared:
    """Return the launch, without its store if the Python here has no torch; notify of that.

    Ranks that don't import torch need no store; those that do can't start with that Python.
    """
    orders = [*prepared.orders]
    for number, (place, order) in enumerate(zip(prepared.places, orders, strict=True)):
        is_here = prepared.channel is None or place.node == prepared.own
        python = script_python(order.argv)
        if not (is_here and order.store_port) or has_torch(python, order.folder):
            continue
        notify(missing(python, order, os.environ))
        orders[number] = replace(order, store_host="", store_port=0)
    return replace(prepared, orders=tuple(orders))


def missing(python: str, order: ScriptOrder, environment: Mapping[str, str]) -> str:
    """Return a notice that a Python has no torch, and which one has it."""
    prefixes = (environment.get(name) for name in ENVIRONMENTS)
    active = next((str(Path(prefix, "bin", "python")) for prefix in prefixes if prefix), "")
    found = [
        option
        for option, path in (("--python venv", active), ("--python jupiter", sys.executable))
        if path not in {"", python} and Path(path).exists() and has_torch(path, order.folder)
    ]
    help_ = f"{found[0]} has it" if found else f"install it: {python} -m pip install torch"
    return plain(f"this Python ({python}) has no torch, so ranks that import it fail; {help_}")


def has_torch(python: str, folder: str) -> bool:
    """Return whether a Python finds torch, without importing it; True if it can't be run."""
    if Path(python) == Path(sys.executable):
        return importlib.util.find_spec("torch") is not None
    try:
        searched = subprocess.run(
            [python, "-c", _FIND_TORCH],
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            cwd=folder,
        )
    except (OSError, subprocess.SubprocessError):
        return True
    return searched.returncode != WITHOUT
