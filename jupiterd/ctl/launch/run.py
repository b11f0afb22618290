"""One run of a launched script on one or several machines, from its start to its exit status.

Owns what the end of one rank means for the others, and what Ctrl-C does. Doesn't know how a rank
is started, here (`gang.script`) or elsewhere (`places`).
"""

import asyncio
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Protocol

from jupiterd.ctl.console import Console
from jupiterd.ctl.launch.rank_output import RankOutput
from jupiterd.errors import JupiterError
from jupiterd.gang.script import STORE_RANK, Ended, Printed, ScriptEvent

FAILURE_LADDER: Final = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 0.0))
"""What the others get when one has failed, and how long each signal is given."""

INTERRUPT_LADDER: Final = ((signal.SIGINT, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 0.0))
"""What all get at Ctrl-C: a script may save; one that hangs in a collective never hears of it."""

STATUS_OF_SIGNAL: Final = 128
LOST: Final = 1


class Site(Protocol):
    """The ranks on one machine."""

    @property
    def name(self) -> str:
        """What people call the machine."""
        ...

    def events(self) -> AsyncGenerator[ScriptEvent]:
        """Yield what they print and how they end, until all have ended; raises JupiterError."""
        ...

    async def signal(self, number: int) -> None:
        """Signal all of them."""
        ...


@dataclass(frozen=True)
class Failure:
    """What ended a run."""

    status: int
    words: str
    rank: int | None = None


class LaunchRun:
    """One run; `run` does it."""

    def __init__(self, sites: Sequence[Site], output: RankOutput, console: Console) -> None:
        self._sites = sites
        self._output = output
        self._console = console
        self._failure: Failure | None = None
        self._ladder: asyncio.Task[None] | None = None

    async def run(self) -> int:
        """Return the exit status: that of the rank that failed first, or 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._interrupted, number)
        try:
            await asyncio.gather(*(self._follow(site) for site in self._sites))
        finally:
            if self._ladder is not None:
                self._ladder.cancel()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)
        if self._failure is None:
            return 0
        self._report(self._failure)
        return self._failure.status

    async def _follow(self, site: Site) -> None:
        try:
            async with aclosing(site.events()) as events:
                async for event in events:
                    self._note(site, event)
        except JupiterError as error:
            self._console.notice(f"{error.message}\n\nhint: {error.hint}")
            self._fail(Failure(LOST, f"the ranks on {site.name} are lost"))

    def _note(self, site: Site, event: ScriptEvent) -> None:
        match event:
            case Printed(rank, is_error, data):
                self._output.take(rank, data, is_error=is_error)
            case Ended(rank, status):
                self._output.finish(rank)
                if rank == STORE_RANK:
                    self._store_ended(status)
                elif status:
                    where = f" on {site.name}" if len(self._sites) > 1 else ""
                    self._fail(Failure(status, f"rank {rank}{where} {ending(status)}", rank))

    def _store_ended(self, status: int) -> None:
        """Say so; ranks that have met don't need it, and others will say what they miss."""
        if status and self._failure is None:
            said = self._output.tail(STORE_RANK)
            last = f": {said[-1]}" if said else ""
            self._console.notice(f"the store where the ranks meet {ending(status)}{last}")

    def _fail(self, failure: Failure) -> None:
        if self._failure is None:
            self._failure = failure
            self._climb(FAILURE_LADDER)

    def _interrupted(self, number: int) -> None:
        """Stop gently; where that goes on already, at once."""
        if self._failure is not None:
            self._climb(FAILURE_LADDER[-1:])
            return
        words = f"stopped by {signal.Signals(number).name}"
        self._failure = Failure(STATUS_OF_SIGNAL + number, words)
        self._console.notice("stopping; press Ctrl-C again to end everything at once")
        self._climb(INTERRUPT_LADDER if number == signal.SIGINT else FAILURE_LADDER)

    def _climb(self, ladder: Sequence[tuple[int, float]]) -> None:
        if self._ladder is not None:
            self._ladder.cancel()
        self._ladder = asyncio.get_running_loop().create_task(self._signal_all(ladder))

    async def _signal_all(self, ladder: Sequence[tuple[int, float]]) -> None:
        for number, grace_s in ladder:
            await asyncio.gather(*(site.signal(number) for site in self._sites))
            await asyncio.sleep(grace_s)

    def _report(self, failure: Failure) -> None:
        others = "; the others were ended" if failure.rank is not None else ""
        self._console.notice(f"{failure.words}{others}")
        if failure.rank is not None and not self._output.is_shown(failure.rank):
            for line in self._output.tail(failure.rank):
                self._console.notice(f"[rank {failure.rank}] {line}")


def ending(status: int) -> str:
    """Say how a process ended, as shells number it."""
    if status > STATUS_OF_SIGNAL and status - STATUS_OF_SIGNAL in set(signal.Signals):
        return f"was killed by {signal.Signals(status - STATUS_OF_SIGNAL).name}"
    return f"ended with status {status}"
