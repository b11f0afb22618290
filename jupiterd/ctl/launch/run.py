"""One attempt of a launched script on one or several machines, from its start to its end.

Owns what the end of one rank means for the others, and what Ctrl-C does. Doesn't know how ranks are
started (`places`), or whether there is another attempt (`attempts`).
"""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from jupiterd.ctl.launch.reporter import LaunchReporter
from jupiterd.ctl.launch.site import Site
from jupiterd.errors import JupiterError
from jupiterd.processes.scripts.events import STORE_RANK, Ended, Ending, Over, ScriptEvent

FAILURE_LADDER: Final = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 2.0))
"""(signal, seconds until the next one) for the other ranks after one has failed."""

INTERRUPT_LADDER: Final = ((signal.SIGINT, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0))
"""The same for all ranks after Ctrl-C: a script may save, unless it hangs in a collective."""

GENTLE: Final = frozenset({signal.SIGINT, signal.SIGHUP})
"""Signals that use INTERRUPT_LADDER: a closed terminal ends a script as Ctrl-C does."""

STATUS_OF_SIGNAL: Final = 128
LOST: Final = 1
ENDED_ALONE_S: Final = 15.0
"""Seconds after a rank's end until a notice names the ranks that still run and may wait for it."""


@dataclass(frozen=True)
class LaunchFailure:
    """The failure or signal that ended an attempt."""

    status: int
    words: str
    rank: int | None = None
    """The rank that failed; None: the launch was stopped, or a machine is lost."""
    is_final: bool = False
    """The user also asked for an end: no restart follows."""


class LaunchRun:
    """One attempt; `run` makes it."""

    def __init__(self, sites: Sequence[Site], ranks: int, reporter: LaunchReporter) -> None:
        self._sites = sites
        self._reporter = reporter
        self._running = set(range(ranks))
        self._done: list[str] = []
        self._failure: LaunchFailure | None = None
        self._ladder: asyncio.Task[None] | None = None
        self._alone: asyncio.TimerHandle | None = None

    async def run(self) -> LaunchFailure | None:
        """Follow all ranks until they have ended; return the first failure, or None."""
        loop = asyncio.get_running_loop()
        taken = [s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if not _is_ignored(s)]
        for number in taken:
            loop.add_signal_handler(number, self._interrupted, number)
        loop.add_signal_handler(signal.SIGWINCH, self._resized)
        try:
            await asyncio.gather(*map(self._follow, self._sites, _ranks_of(self._sites)))
        finally:
            if self._ladder is not None:
                self._ladder.cancel()
            self._let_alone()
            for number in (*taken, signal.SIGWINCH):
                loop.remove_signal_handler(number)
        return self._failure

    async def _follow(self, site: Site, ranks: range) -> None:
        try:
            async with aclosing(site.events()) as events:
                async for event in events:
                    self._note(site, event)
            self._check_ends(site, ranks)
        except JupiterError as error:
            self._reporter.notice(f"{error.message}\n\nhint: {error.hint}")
            self._fail(LaunchFailure(LOST, f"the ranks on {site.name} are lost"))

    def _check_ends(self, site: Site, ranks: range) -> None:
        """Fail if a site's events ended without the end of a rank, which may have failed."""
        if without_end := sorted(self._running.intersection(ranks)):
            named = ", ".join(f"rank {rank}" for rank in without_end)
            self._fail(LaunchFailure(LOST, f"how {named}{self._where(site)} ended isn't known"))

    def _note(self, site: Site, event: ScriptEvent) -> None:
        self._reporter.take(event, site.name)
        match event:
            case Ended(rank, status) if rank == STORE_RANK:
                self._store_ended(status)
            case Ended(rank, status):
                self._rank_ended(rank, status, self._where(site))
            case Ending(reason):
                self._ended_there(f"{site.name} ended its ranks: {reason}")
            case Over(reason) if reason and self._failure is None:
                self._fail(LaunchFailure(LOST, f"{site.name} ended its ranks: {reason}"))
            case _:
                pass

    def _ended_there(self, words: str) -> None:
        """Fail because a machine ended its ranks; replace a rank's failure that this caused."""
        if self._failure is not None and self._failure.rank is not None:
            self._failure = LaunchFailure(LOST, words)
        self._fail(LaunchFailure(LOST, words))

    def _where(self, site: Site) -> str:
        return f" on {site.name}" if len(self._sites) > 1 else ""

    def _store_ended(self, status: int) -> None:
        """Print a notice only: ranks that have met don't need the store, and others will fail."""
        if status and self._failure is None:
            said = self._reporter.tail(STORE_RANK)
            last = f": {said[-1]}" if said else ""
            self._reporter.notice(f"the store where the ranks meet {ending(status)}{last}")

    def _rank_ended(self, rank: int, status: int, where: str) -> None:
        self._running.discard(rank)
        if status:
            self._fail(LaunchFailure(status, f"rank {rank}{where} {ending(status)}", rank))
            return
        self._done.append(f"rank {rank}{where}")
        self._let_alone()
        if self._running:
            loop = asyncio.get_running_loop()
            self._alone = loop.call_later(ENDED_ALONE_S, self._say_alone)

    def _let_alone(self) -> None:
        if self._alone is not None:
            self._alone.cancel()

    def _say_alone(self) -> None:
        """Name the ranks that are done and those that still run: they may wait forever."""
        if self._failure is None and self._running:
            left = ", ".join(f"rank {rank}" for rank in sorted(self._running))
            done = ", ".join(self._done)
            self._reporter.notice(
                f"ended with status 0 for {ENDED_ALONE_S:.0f} s: {done}; still at work: {left}"
            )

    def _fail(self, failure: LaunchFailure) -> None:
        if self._failure is None:
            self._failure = failure
            self._climb(FAILURE_LADDER)

    def _interrupted(self, number: int) -> None:
        """Stop the ranks gently; if they are being stopped already, kill them."""
        if self._failure is not None:
            self._failure = replace(self._failure, is_final=True)
            if number != signal.SIGHUP:  # a closing terminal sends two of them
                self._climb(FAILURE_LADDER[-1:])
            return
        words = f"stopped by {signal.Signals(number).name}"
        self._failure = LaunchFailure(STATUS_OF_SIGNAL + number, words)
        self._climb(INTERRUPT_LADDER if number in GENTLE else FAILURE_LADDER)
        with suppress(OSError):  # the terminal may be closed
            self._reporter.notice("stopping; press Ctrl-C again to end everything at once")

    def _resized(self) -> None:
        if size := self._reporter.window():
            loop = asyncio.get_running_loop()
            self._resizing = [loop.create_task(site.resize(*size)) for site in self._sites]

    def _climb(self, ladder: Sequence[tuple[int, float]]) -> None:
        if self._ladder is not None:
            self._ladder.cancel()
        self._ladder = asyncio.get_running_loop().create_task(self._signal_all(ladder))

    async def _signal_all(self, ladder: Sequence[tuple[int, float]]) -> None:
        for number, grace_s in ladder:
            await asyncio.gather(*(site.signal(number) for site in self._sites))
            await asyncio.sleep(grace_s)
        for site in self._sites:
            site.give_up()


def _ranks_of(sites: Sequence[Site]) -> list[range]:
    """Return the ranks of each site; ranks are numbered machine by machine."""
    ends = accumulate(site.processes for site in sites)
    return [range(end - site.processes, end) for site, end in zip(sites, ends, strict=True)]


def _is_ignored(number: int) -> bool:
    """Return whether the parent process made us ignore a signal, as nohup does with SIGHUP."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


def ending(status: int) -> str:
    """Return the end of a sentence about how a process ended; status: as shells number it."""
    if status > STATUS_OF_SIGNAL and status - STATUS_OF_SIGNAL in set(signal.Signals):
        return f"was killed by {signal.Signals(status - STATUS_OF_SIGNAL).name}"
    return f"ended with status {status}"
