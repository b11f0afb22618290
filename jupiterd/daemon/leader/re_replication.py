"""Seeing to it that what counts lies on two nodes, also when one of them has gone.

Owns when the leader looks, and asking. Doesn't know what counts or who takes a copy
(`cluster.artifacts.replication_policy`). Where nothing has changed, nobody is asked.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from jupiterd.cluster.artifacts.replication_policy import Copy, Holder, copies_to_make, of_record
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.term_services import WorkServices
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, NodeId, short

log = logging.getLogger(__name__)

TICK_S: Final = 30.0
"""Who is alive must be the same at two looks: a machine that is started again needs no new copy."""

REFUSED_S: Final = 3600.0
"""Whoever didn't take a copy is asked again after so long: a disk may have been cleared."""


class ReReplication:
    """The leader's care for second copies."""

    def __init__(
        self, hears: Callable[[], frozenset[NodeId]], services: Callable[[], WorkServices | None]
    ) -> None:
        """`hears`: the members that are alive; `services`: None where another node leads."""
        self._hears, self._services = hears, services
        self._alive: frozenset[NodeId] = frozenset()
        self._seen: object = None
        self._asked_in: tuple[int, frozenset[NodeId]] | None = None
        """The term, and who was alive, when the refusals were said."""
        self._refused: dict[Copy, float] = {}
        """What was refused, and when."""

    async def run(self) -> None:
        """Look again and again; ask only where something has changed."""
        while True:
            await asyncio.sleep(TICK_S)
            alive, services = self._hears(), self._services()
            is_calm, self._alive = alive == self._alive, alive
            if services is not None and is_calm and len(alive) > 1:
                await self.look(services.term, services.machines, services.reach, now_s())

    async def look(self, term: Term, machines: Machines, reach: ArtifactReach, at_s: float) -> None:
        """Have copied what has one copy, unless all was well and nothing has changed since."""
        self._forget_refusals((term.number, self._alive), at_s)
        now = term.number, self._alive, term.replica.version
        if now == self._seen:
            return
        needed = term.replica.derived(_of_record)
        holders = await self._holders(machines, reach, sorted(needed))
        copies = copies_to_make(needed, holders, self._refused)
        for copy in copies:
            if term.is_over:
                return
            await self._make(term, reach, copy, at_s)
        self._seen = None if copies else now

    def _forget_refusals(self, asked_in: tuple[int, frozenset[NodeId]], at_s: float) -> None:
        kept = {copy: said_s for copy, said_s in self._refused.items() if at_s - said_s < REFUSED_S}
        if asked_in != self._asked_in:
            kept = {}
        if len(kept) < len(self._refused):
            self._seen = None
        self._asked_in, self._refused = asked_in, kept

    async def _make(self, term: Term, reach: ArtifactReach, copy: Copy, at_s: float) -> None:
        is_copied = await _is_copied(term, reach, copy)
        if is_copied:
            extra = {"artifact": short(copy.artifact), "node": short(copy.to)}
            log.info("copy_made", extra=extra)
        elif is_copied is not None:
            self._refused[copy] = at_s

    async def _holders(
        self, machines: Machines, reach: ArtifactReach, needed: list[ArtifactId]
    ) -> list[Holder]:
        if not needed:
            return []
        return await reach.holders_among(sorted(machines.answering()), needed)


def _of_record(state: State) -> frozenset[ArtifactId]:
    return of_record(state.cycles)


async def _is_copied(term: Term, reach: ArtifactReach, copy: Copy) -> bool | None:
    """Say whether a copy was made; None where it isn't all there yet."""
    if copy.to != term.self_id:
        return await reach.artifact_cache.copy_to(copy.to, copy.artifact)
    try:
        await reach.artifact_cache.ensure(copy.artifact)
    except JupiterError as error:
        log.warning("copy_not_made", extra={"reason": error.message})
        return False
    return True
