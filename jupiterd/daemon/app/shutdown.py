"""The orderly end of a daemon: from the first wish that it stops to its last word.

Owns what comes before what, and how long each may take. Doesn't know how any of it is done, or who
wishes it.

1. Nothing begins here any more. Gangs that have a rank here stop after their running step, which
   each machine saves; whoever leads records it and ends the attempt, so that no step is lost. A
   leader goes on leading meanwhile.
2. It resigns, brings what was recorded last to the others, and says goodbye; one of them is named
   to lead, and does at once.
3. What still runs here is ended.

Whoever wishes it again doesn't want to wait for the first part.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import JupiterError, PeerUnreachableError

log = logging.getLogger(__name__)

STEP_S: Final = 20.0
"""How long the running step may take, without saving it."""

UNFOLLOWED_S: Final = 3.0
"""How long somebody is waited for who records it: a new leader takes a moment."""

LOOK_S: Final = 0.25


class LastStep(Protocol):
    """A rank that stops after its running step."""

    @property
    def order(self) -> WorkOrder:
        """The order that it carries out."""
        ...

    @property
    def is_followed(self) -> bool:
        """Whether a leader hears what it does."""
        ...


class EndsWork(Protocol):
    """What holds the ranks of gangs here."""

    def finish_steps(self) -> Sequence[LastStep]:
        """Let nothing begin any more; return who has a step to save."""
        ...

    async def end_all(self, why: JupiterError) -> None:
        """End what still runs."""
        ...


class RecordedFacts(Protocol):
    """What is agreed on, and whether there is news of it."""

    @property
    def state(self) -> State:
        """What is agreed on."""
        ...

    version: int

    async def changed_since(self, version: int) -> int:
        """Return the version once it is another one."""
        ...


class AnnouncesLeaving(Protocol):
    """Announces to the other members that this one leaves."""

    async def say_goodbye(self) -> None:
        """Resign, and announce it."""
        ...


class Shutdown:
    """Whether a daemon is to stop, and the steps of its end."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()
        self._patience = asyncio.timeout(None)
        self._has_patience = False

    @property
    def is_requested(self) -> bool:
        """Say whether it is to stop."""
        return self._requested.is_set()

    def ask(self) -> None:
        """Request the end; requested again, it doesn't wait for the running step."""
        if self._has_patience:
            self._patience.reschedule(0.0)
        self._requested.set()

    async def wait(self) -> None:
        """Return once it is to stop."""
        await self._requested.wait()

    async def leave(
        self, name: str, holder: EndsWork, replica: RecordedFacts, heartbeats: AnnouncesLeaving
    ) -> None:
        """Save the running step, hand over the lead, say goodbye, and end what still runs here."""
        works = holder.finish_steps()
        log.info("stops", extra={"ranks": len(works)})
        if works:
            await self._save(works, replica)
        await heartbeats.say_goodbye()
        await holder.end_all(PeerUnreachableError(f"{name} was stopped"))

    async def _save(self, works: Sequence[LastStep], replica: RecordedFacts) -> None:
        until_s = asyncio.get_running_loop().time() + STEP_S + max(map(_saving_s, works))
        self._patience, self._has_patience = asyncio.timeout_at(until_s), True
        try:
            async with self._patience:
                await _recorded(works, replica)
        except TimeoutError:
            log.warning("stops_without_last_step")
        finally:
            self._has_patience = False


async def _recorded(works: Sequence[LastStep], replica: RecordedFacts) -> None:
    """Return once their leader has recorded what they did last, or nobody will."""
    clock = asyncio.get_running_loop().time
    followed_s = clock()
    while any(not _is_closed(work, replica) for work in works):
        version = replica.version
        followed_s = clock() if any(work.is_followed for work in works) else followed_s
        if clock() - followed_s > UNFOLLOWED_S:
            log.warning("nobody_records_last_step")
            return
        await _changed(replica, version)


async def _changed(replica: RecordedFacts, version: int) -> None:
    try:
        async with asyncio.timeout(LOOK_S):
            await replica.changed_since(version)
    except TimeoutError:
        return


def _is_closed(work: LastStep, replica: RecordedFacts) -> bool:
    cycles = replica.state.cycles
    found = [cycle for name, cycle in cycles.items() if name.startswith(work.order.cycle)]
    return all(work.order.attempt in cycle.attempts_closed for cycle in found)


def _saving_s(work: LastStep) -> float:
    """Return how long its state may take to be written, read again for its hash, and synced."""
    from jupiterd.cycle.training.plan import ModelShape
    from jupiterd.daemon.gangs.surviving_states import save_request_for

    return save_request_for(ModelShape.from_plain(work.order.params["shape"]), 0).within_s
