"""How long compiling took on this machine, by what was compiled; kept in a file.

Owns measuring it, from a rank's word that it compiles to its first step, and that file. Doesn't
know what is compiled: it is told apart by the parameters that a compiler's work depends on.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from jupiterd.daemon.runtime.clock import now_s
from jupiterd.protocol.frames import Frame, Preparing, Progressed
from jupiterd.protocol.preparing_stage import COMPILING

log = logging.getLogger(__name__)

KEPT: Final = 64
"""Times in the file; the oldest makes room."""

_DEPENDS_ON: Final = ("shape", "micro_batch_sequences", "engine", "device", "world_size")
_OF_THE_PLAN: Final = ("micro_batch_sequences", "options")


class CompileTimes:
    """The times of one machine."""

    def __init__(self, path: Path, versions: Sequence[tuple[str, str]]) -> None:
        """Take where they are kept, and the versions of what compiles."""
        self._path = path
        self._versions = tuple(versions)

    def watch(self, task: str, params: Mapping[str, Any]) -> "CompileWatch":
        """Return what listens to the frames of one worker."""
        return CompileWatch(self, self._key(task, params))

    def _key(self, task: str, params: Mapping[str, Any]) -> str:
        plan = cast("Mapping[str, Any]", params.get("plan") or {})
        what = {
            "task": task,
            "versions": dict(self._versions),
            **{name: params.get(name) for name in _DEPENDS_ON},
            "plan": {name: plan.get(name) for name in _OF_THE_PLAN},
        }
        return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()

    async def last_s(self, key: str) -> float:
        """Return how long it took the last time, in s; 0 where that isn't known."""
        return (await asyncio.to_thread(self._read)).get(key, 0.0)

    async def keep(self, key: str, seconds: float) -> None:
        """Write down how long it took; a full disk only costs the figure."""
        try:
            await asyncio.to_thread(self._write, key, round(seconds, 1))
        except OSError as error:
            log.warning("compile_time_not_kept", extra={"reason": str(error)})

    def _read(self) -> dict[str, float]:
        try:
            told = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        times = cast("dict[str, object]", told) if isinstance(told, dict) else {}
        return {key: float(value) for key, value in times.items() if isinstance(value, int | float)}

    def _write(self, key: str, seconds: float) -> None:
        times = self._read()
        times.pop(key, None)
        times[key] = seconds
        newest = dict(list(times.items())[-KEPT:])
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(newest), encoding="utf-8")
        beside.replace(self._path)


class CompileWatch:
    """Listens to one worker: it adds to its word what is known, and measures how long it takes."""

    def __init__(self, times: CompileTimes, key: str) -> None:
        self._times = times
        self._key = key
        self._began_s: float | None = None

    async def take(self, frame: Frame) -> Frame:
        """Return the frame, with the time that compiling took before where it says so."""
        if isinstance(frame, Preparing):
            self._began_s = now_s() if frame.stage == COMPILING else None
            if self._began_s is not None:
                return replace(frame, expected_s=await self._times.last_s(self._key))
        elif isinstance(frame, Progressed) and self._began_s is not None:
            began_s, self._began_s = self._began_s, None
            await self._times.keep(self._key, now_s() - began_s)
        return frame
