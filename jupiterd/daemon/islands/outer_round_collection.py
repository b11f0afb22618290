"""One open outer round: pseudo-gradients come in and get a second copy, and the round closes.

Owns waiting for that. Doesn't know when a round closes (`cycle.islands.outer_round`), or what
follows.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from jupiterd.cycle.islands.outer_round import Closing, OuterRound
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients, ReportedPseudoGradient
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, CycleId, short
from jupiterd.protocol.training_values import PseudoGradient

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""How long a round stays open at the most once it could be closed; news are taken in at once."""

QUIET_LOOK_S = 1.0
"""The same while nothing has come in yet: then it is early enough to hear a second later of who is
lost, or that another leader has closed the round. Each look takes a millisecond from whoever trains
on the leader's machine."""

RETRY_S = 1.0
"""How long a pseudo-gradient that couldn't be copied is left alone: its island tells of it once."""


class OuterRoundCollection:
    """The pseudo-gradients of one round."""

    def __init__(
        self,
        reach: ArtifactReach,
        pseudo_gradients: PseudoGradients,
        after: str,
        islands: Collection[CycleId],
        *,
        is_first: bool,
        lag: int = 1,
    ) -> None:
        """Begin to gather.

        Args:
            reach: what keeps a second copy of what is told.
            pseudo_gradients: what the gangs of the islands tell.
            after: hash of the outer step that the round follows.
            islands: who has a part in it.
            is_first: whether it is the run's first round, or was ordered with it.
            lag: see `outer_orders.LAGS`.
        """
        self._reach, self._pseudo_gradients = reach, pseudo_gradients
        self._after = after
        self._islands = sorted(islands)
        self._round = OuterRound(islands, is_first=is_first, lag=lag, opened_s=now_s())
        self._reported: dict[str, ReportedPseudoGradient] = {}
        self._copying: set[asyncio.Task[None]] = set()
        self._again_s: dict[str, float] = {}
        """When a pseudo-gradient is tried again, of those that couldn't be copied."""

    @property
    def pseudo_gradients(self) -> Mapping[str, PseudoGradient]:
        """Return what is in, by island."""
        return self._round.pseudo_gradients

    @property
    def missing(self) -> tuple[str, ...]:
        """Return who isn't in."""
        return self._round.missing

    def artifact(self, island: str) -> ArtifactId:
        """Return the pseudo-gradient of an island that is in."""
        return self._reported[island].stored.artifact

    async def closing(
        self, lost: Callable[[], Collection[str]], counts: Callable[[], bool]
    ) -> Closing | None:
        """Return how the round ends, once it does and what counts in it has two copies.

        Args:
            lost: returns which islands are gone just now; it may raise.
            counts: says at each look whether the round still counts; where not, None is returned.
        """
        async with asyncio.TaskGroup() as group:
            while counts():
                self._take_up(group)
                self._round.set_lost(lost())
                if self._round.closing(now_s()) is not None:
                    if self._copying:
                        await asyncio.wait(self._copying)
                    if (closing := self._round.closing(now_s())) is not None:
                        return closing
                await self._pseudo_gradients.news(
                    LOOK_S if self._round.pseudo_gradients else QUIET_LOOK_S
                )
            for task in self._copying:
                task.cancel()
        return None

    def _take_up(self, group: asyncio.TaskGroup) -> None:
        for island in self._islands:
            reported = self._pseudo_gradients.of(island, self._after)
            is_left_alone = now_s() < self._again_s.get(island, 0.0)
            if reported is None or is_left_alone or island in self._round.pseudo_gradients:
                continue
            self._reported[island] = reported
            self._round.arrived(island, reported.stored.pseudo_gradient, reported.at_s)
            copying = group.create_task(self._copy(island, reported))
            self._copying.add(copying)
            copying.add_done_callback(self._copying.discard)

    async def _copy(self, island: CycleId, reported: ReportedPseudoGradient) -> None:
        """Copy a pseudo-gradient to a second node: its author may be gone when others want it."""
        try:
            await self._reach.keep_two_copies(reported.stored.artifact, reported.node)
        except JupiterError as error:
            log.warning("way_not_copied", extra={"island": short(island), "reason": error.message})
            self._round.take_back(island)
            self._again_s[island] = now_s() + RETRY_S
