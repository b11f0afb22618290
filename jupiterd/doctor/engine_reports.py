"""What torch and MLX report of themselves, from a worker process of its own.

Owns starting it and reading its one line. Doesn't know what follows. A library that crashes, or
hangs in a driver, takes nothing but that process with it.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jupiterd.hardware import nvidia
from jupiterd.processes import device_locks
from jupiterd.processes.device_locks import holder_now
from jupiterd.processes.environment import worker_environment

MODULE: Final = "jupiterd.workers.engine_report"
TIMEOUT_S: Final = 60.0
ROOM_BYTES: Final = 2 << 30
"""Of a GPU's memory that must be free before anything is computed there to see whether it works."""

EngineReport = Mapping[str, Any]


def engine_report(engine: str, gpus: Sequence[str] = ()) -> EngineReport:
    """Return what the engine says; `error` says why it doesn't, and `missing` that it isn't here.

    Args:
        engine: `torch` or `mlx`.
        gpus: UUIDs of the CUDA devices: where one is held, or has little room, nothing is computed.
    """
    may_compute = all(map(_has_room, gpus))
    try:
        done = subprocess.run(
            [sys.executable, "-m", MODULE, engine, "compute" if may_compute else "look"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
            env=worker_environment("engine_report", {"engine": engine}),
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"{engine} gave no answer within {TIMEOUT_S:.0f} s"}
    except OSError as error:
        return {"error": f"no worker could be started: {error}"}
    return _read(done.stdout) or {"error": _last_words(engine, done)}


def _has_room(uuid: str) -> bool:
    return not holder_now(uuid, device_locks.FOLDER) and nvidia.free_bytes(uuid) >= ROOM_BYTES


def _read(text: str) -> EngineReport | None:
    """Return the last line, if it is an answer: libraries print what they like before it."""
    try:
        report: object = json.loads(text.strip().rpartition("\n")[2])
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _last_words(engine: str, done: "subprocess.CompletedProcess[str]") -> str:
    said = done.stderr.strip().rpartition("\n")[2]
    if done.returncode < 0:
        return f"the process that asked {engine} was ended by signal {-done.returncode}; {said}"
    return f"the process that asked {engine} ended with {done.returncode}: {said}"
