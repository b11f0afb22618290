"""What torch and MLX report about themselves, from a separate worker process.

Owns starting the process and reading its line. Doesn't judge the report. A library that crashes or
hangs in a driver ends only that process.
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
"""Bytes of a GPU's memory that must be free for a test computation on it."""

EngineReport = Mapping[str, Any]


def engine_report(engine: str, gpus: Sequence[str] = ()) -> EngineReport:
    """Return the engine's report; with `error` if there is none, `missing` if it isn't installed.

    Args:
        engine: `torch` or `mlx`.
        gpus: UUIDs of the CUDA devices; if one is locked or has little free memory, there is no
        test computation.
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
    """Return the report in the last line, if it is one; libraries may print other lines before."""
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
