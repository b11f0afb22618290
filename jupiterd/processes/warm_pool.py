"""Starts workers of a gang from a warm nursery of their kind, where there is one.

Owns the nurseries of this node, and when they end. Doesn't know gangs: the caller tells which kinds
it wants. A worker that others of its kind will follow may start a nursery too, which costs as much
as a cold start; that nursery ends a while after its last worker.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from jupiterd.errors import WorkFailedError
from jupiterd.processes.environment import GRAPH_CACHE, PASSED_ON
from jupiterd.processes.forkserver import CAN_FORK, Forkserver, open_nursery
from jupiterd.processes.import_threads import ONE_THREAD
from jupiterd.processes.interpreter import Process
from jupiterd.processes.nccl_environment import NAMES as NCCL_NAMES
from jupiterd.processes.rank_variables import is_rank_variable

log = logging.getLogger(__name__)

IDLE_S = 60.0
"""How long an unwanted nursery without workers is kept, in s: the next work may want it."""

BIRTH_S = 15.0
"""How long to wait for a fork, in s: a cold start takes no longer."""

LOADING_S = 60.0
"""How long to wait for a fork while the nursery loads its libraries, in s."""

LOOK_S = 0.1
HANGS_S = 120.0

LATE = (
    NCCL_NAMES
    | ONE_THREAD.keys()
    | {
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "NODE_RANK",
        "GROUP_RANK",
        "JUPITER_ATTEMPT",
        "GLOO_SOCKET_IFNAME",
        GRAPH_CACHE,
    }
)
"""Variables that are read when a gang forms or torch first compiles, or set again after the fork;
all others are read when libraries load."""


class WarmPool:
    """The nurseries of one daemon."""

    def __init__(self, logs: Path, group: asyncio.TaskGroup) -> None:
        self._logs = logs
        self._group = group
        self._open: dict[str, Forkserver] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends: dict[str, asyncio.TimerHandle] = {}
        self._opened: dict[str, asyncio.Event] = {}
        """Kind -> set once its process was started, or couldn't be."""
        self._began_s: dict[str, float] = {}
        """Kind -> when its first nursery was started."""
        self._next: dict[str, Mapping[str, str]] = {}
        """Kind -> the environment of the nursery to start next."""

    def want(
        self, kinds: Mapping[str, Mapping[str, str]], *, ends_others_now: bool = False
    ) -> None:
        """Keep a nursery of each of these kinds, with its environment.

        Args:
            kinds: kind -> environment.
            ends_others_now: end all others and their workers at once; else a while after their last
                worker.
        """
        for kind, environment in kinds.items():
            self._keep(kind, environment)
        for kind, task in self._tasks.items():
            if kind in kinds:
                continue
            if ends_others_now:
                task.cancel()
            elif kind not in self._ends:
                self._end_later(kind)

    async def spawn(
        self,
        kind: str,
        environment: Mapping[str, str],
        descriptors: Sequence[int],
        *,
        begins: bool = False,
    ) -> Process | None:
        """Fork a worker if the nursery of its kind has the same environment; else return None.

        Args:
            kind: of nursery.
            environment: the worker's.
            descriptors: its link, its output, and those that it inherits under the same numbers.
            begins: start a nursery and wait for it, if there is none or only an unwanted one with
                another environment.
        """
        if begins and (kind in self._ends or kind not in self._tasks):
            self._keep(kind, environment)
            self._end_later(kind)
        if kind in self._opened:
            await self._opened[kind].wait()
        nursery = self._open.get(kind)
        if nursery is None or not nursery.is_alive or not _fits(nursery.environment, environment):
            return None
        if kind in self._ends:
            self._end_later(kind)
        link, output, *others = descriptors
        try:
            async with asyncio.timeout(BIRTH_S if nursery.is_ready else LOADING_S):
                return await nursery.bear(environment, link, output, others)
        except WorkFailedError as error:
            log.warning("started_cold", extra={"kind": kind, "reason": error.message})
        except TimeoutError:
            log.warning("started_cold", extra={"kind": kind, "reason": "the nursery hangs"})
            nursery.kill()
        return None

    async def is_warm(self, kind: str, within_s: float) -> bool:
        """Wait up to `within_s` while a nursery loads; return False only if it still does.

        A nursery that loads for longer than `HANGS_S` hangs; don't wait for it.
        """
        deadline_s = asyncio.get_running_loop().time() + within_s
        while self._is_loading(kind):
            if asyncio.get_running_loop().time() >= deadline_s:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    def _is_loading(self, kind: str) -> bool:
        nursery, began_s = self._open.get(kind), self._began_s.get(kind)
        if began_s is None or (nursery is not None and nursery.is_ready):
            return False
        return asyncio.get_running_loop().time() - began_s < HANGS_S

    def _keep(self, kind: str, environment: Mapping[str, str]) -> None:
        self._cancel_end(kind)
        if CAN_FORK and kind not in self._tasks:
            self._next[kind] = _early(environment)
            self._began_s[kind] = asyncio.get_running_loop().time()
            self._opened[kind] = asyncio.Event()
            task = self._group.create_task(self._run(kind), name=f"nursery {kind}")
            task.add_done_callback(lambda _: self._ended(kind))
            self._tasks[kind] = task
        nursery = self._open.get(kind)
        if nursery and not (_fits(nursery.environment, environment) or nursery.has_children):
            self._next[kind] = _early(environment)
            self._opened[kind].clear()
            nursery.kill()

    async def _run(self, kind: str) -> None:
        try:
            while (early := self._next.pop(kind, None)) is not None:
                async with open_nursery(kind, early, self._logs / f"nursery-{kind}.log") as nursery:
                    self._open[kind] = nursery
                    self._opened[kind].set()
                    await nursery.gone()
        except OSError as error:
            log.warning("no_nursery", extra={"kind": kind, "reason": str(error)})

    def _ended(self, kind: str) -> None:
        """Forget a nursery, even one that was cancelled before its task started."""
        self._next.pop(kind, None)
        self._open.pop(kind, None)
        self._opened[kind].set()
        self._tasks.pop(kind, None)
        self._began_s.pop(kind, None)
        self._cancel_end(kind)

    def _end_later(self, kind: str) -> None:
        """End it once it has had no worker for `IDLE_S`; ending it also ends its workers."""
        self._cancel_end(kind)
        if kind in self._tasks:
            loop = asyncio.get_running_loop()
            self._ends[kind] = loop.call_later(IDLE_S, self._end_unused, kind)

    def _end_unused(self, kind: str) -> None:
        nursery = self._open.get(kind)
        if nursery is None or nursery.has_children:  # it is starting, or in use
            self._end_later(kind)
        else:
            self._tasks[kind].cancel()

    def _cancel_end(self, kind: str) -> None:
        if (end := self._ends.pop(kind, None)) is not None:
            end.cancel()


def _fits(read: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Return whether libraries that were loaded with one environment suit the other."""
    return read == _early(wanted)


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not _is_late(name)}


def _is_late(name: str) -> bool:
    """Return whether a variable is read after the fork; what people give ranks is."""
    return name in LATE or (is_rank_variable(name) and name not in PASSED_ON)
