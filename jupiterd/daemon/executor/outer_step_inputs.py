"""Outer steps for a rank: found in the ledger, with the pseudo-gradients that they merge fetched.

Owns finding the step that follows another, and having it whole on this machine. Doesn't know who
decides on steps, or what a rank does with one.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.outer_branch import Steps
from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
from jupiterd.daemon.ledger.replica import Replica
from jupiterd.errors import ConflictError, DiskFullError, JupiterError, NotFoundError
from jupiterd.ids import ArtifactId, CycleId, short
from jupiterd.protocol.frames import OuterStepArrived, OuterStepMissing
from jupiterd.protocol.training_values import RoundOrder

log = logging.getLogger(__name__)

PARAM = "island"
"""Names the run and the island in an order."""

OFF_BRANCH_S = 5.0
"""How long a step that isn't on the line that counts is waited for: more of its own may come."""

UNKNOWN_STEP_S = 30.0
"""The same of a step that isn't in this ledger at all: it is behind."""

UNREACHABLE_S = 30.0
"""How long a pseudo-gradient that nobody in reach has is waited for, or room for it on the disk."""

LONGEST_S = 600.0
"""How long all pseudo-gradients of a step may take: a gigabyte over Wi-Fi."""

RETRY_S = 1.0


class OuterStepInputs:
    """What ranks of islands on this node wait for."""

    def __init__(self, replica: Replica, artifact_cache: ArtifactCache) -> None:
        self._replica = replica
        self._artifact_cache = artifact_cache

    async def bring(
        self,
        params: Mapping[str, Any],
        after: str,
        hand_in: Callable[[OuterStepArrived | OuterStepMissing], None],
    ) -> None:
        """Hand in the step after that one once it is taken, or say why it won't come.

        params: of the rank's order
        """
        try:
            hand_in(await self._brought(params[PARAM], after))
        except (JupiterError, TimeoutError) as error:
            reason = (
                str(error) or f"its pseudo-gradients couldn't be fetched within {LONGEST_S:g} s"
            )
            log.warning("outer_step_missing", extra={"after": short(after), "reason": reason})
            hand_in(_missing(after, reason))
        except Exception as error:  # ours: the rank gets the reason, and the daemon goes on
            log.exception("outer_step_failed")
            hand_in(_missing(after, str(error)))

    async def _brought(self, place: Mapping[str, Any], after: str) -> OuterStepArrived:
        run, island = CycleId(place["run"]), CycleId(place["island"])
        round_number = int(place["round"])
        while True:
            step, fact = await self._found(run, round_number, after)
            pseudo_gradients = await self._while_on(run, round_number, step, self._fetched(fact))
            if pseudo_gradients is not None:
                return _arrived(after, step, fact, island, pseudo_gradients)

    async def _while_on(
        self, run: CycleId, round_number: int, step: str, fetched: Awaitable[list[str]]
    ) -> list[str] | None:
        """Return what is fetched of a step; None once another line counts."""
        fetching = asyncio.ensure_future(fetched)
        try:
            while step in self._line(run, round_number):
                news = asyncio.ensure_future(self._replica.changed_since(self._replica.version))
                await asyncio.wait({fetching, news}, return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
                if fetching.done():
                    return fetching.result()
            return None
        finally:
            fetching.cancel()

    async def _found(
        self, run: CycleId, round_number: int, after: str
    ) -> tuple[str, OuterStepTaken]:
        """Return the next step on the line, with its name.

        Raises:
            ConflictError: another line than that of `after` counts.
        """
        began_s = time.monotonic()
        while True:
            version, line = self._replica.version, self._line(run, round_number)
            if found := _next(line, after):
                return found
            if not after or after in line:
                await self._replica.changed_since(version)
                began_s = time.monotonic()
                continue
            # Others may take one step after another meanwhile: that is no reason to wait on.
            patience_s = OFF_BRANCH_S if self._is_known(run, after) else UNKNOWN_STEP_S
            try:
                async with asyncio.timeout(began_s + patience_s - time.monotonic()):
                    await self._replica.changed_since(version)
            except TimeoutError as error:
                raise ConflictError("the other islands went on without this one") from error

    def _is_known(self, run: CycleId, step: str) -> bool:
        cycle = self._replica.state.cycles.get(run)
        return cycle is not None and cycle.has_outer_step(step)

    def _line(self, run: CycleId, round_number: int) -> Steps:
        cycle = self._replica.state.cycles.get(run)
        return {} if cycle is None else cycle.outer_branch(round_number)

    async def _fetched(self, fact: OuterStepTaken) -> list[str]:
        """Return the folders of a step's pseudo-gradients; whoever has one may be away for a while.

        Raises:
            NotFoundError: nobody has one of them.
            DiskFullError: there is no room for one.
            TimeoutError: they take too long.
        """
        began_s = time.monotonic()
        # A task group would hide what went wrong in a group of errors.
        fetches = [
            asyncio.ensure_future(self._patiently(pseudo_gradient))
            for pseudo_gradient in fact.pseudo_gradients
        ]
        try:
            async with asyncio.timeout(LONGEST_S):
                found = await asyncio.gather(*fetches)
        finally:
            for fetch in fetches:
                fetch.cancel()
        took_s = f"{time.monotonic() - began_s:.3f}"
        log.info("ways_fetched", extra={"step": fact.number, "ways": len(found), "took_s": took_s})
        return [str(folder) for folder in found]

    async def _patiently(self, pseudo_gradient: ArtifactId) -> Path:
        """Return a pseudo-gradient's folder; what is begun may be broken off now and then."""
        had_s = time.monotonic()
        while True:
            try:
                return await self._artifact_cache.ensure(pseudo_gradient)
            except JupiterError as error:
                if not isinstance(error, NotFoundError | DiskFullError):
                    had_s = time.monotonic()
                elif time.monotonic() - had_s >= UNREACHABLE_S:
                    raise
                extra = {"artifact": short(pseudo_gradient), "reason": error.message}
                log.warning("way_not_fetched", extra=extra)
            await asyncio.sleep(RETRY_S)


def _next(line: Steps, after: str) -> tuple[str, OuterStepTaken] | None:
    """Return the step after that one, or the first."""
    return next((item for item in line.items() if item[1].parent == after), None)


def _missing(after: str, reason: str) -> OuterStepMissing:
    return OuterStepMissing(after, f"the outer step is missing: {reason}"[:500])


def _arrived(
    after: str, step: str, fact: OuterStepTaken, island: CycleId, pseudo_gradients: list[str]
) -> OuterStepArrived:
    return OuterStepArrived(
        after=after,
        order=RoundOrder(
            step=step,
            number=fact.number,
            first_step=fact.first_step,
            steps=fact.steps,
            batch_sequences=fact.batches.get(island, 0),
            positions=fact.positions.get(island, ""),
            island=island,
            lag=fact.lag,
            scored_step=fact.scored_step,
        ),
        pseudo_gradients=pseudo_gradients,
        tokens=fact.weights or fact.tokens,
        rate=fact.rate,
        momentum=fact.momentum,
        is_counted=island in fact.islands,
        is_compared=not fact.batches.keys() <= {*fact.islands},
        horizon=dict(fact.horizon),
    )
