"""One try of a launch: what the end of ranks elsewhere means for it."""

import asyncio
import errno
import os
import signal
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from jupiterd.ctl.launch import run as launch_run
from jupiterd.ctl.launch.reporter import LaunchReporter
from jupiterd.ctl.launch.run import LaunchFailure, LaunchRun
from jupiterd.processes.scripts.events import Ended, Ending, Over, ScriptEvent

TIMEOUT_S = 5.0


class Site:
    """Tells these events, one after the other; numbers are pauses in seconds."""

    processes = 1

    def __init__(self, name: str, *told: ScriptEvent | float) -> None:
        self.name, self._told = name, told

    async def events(self) -> AsyncGenerator[ScriptEvent]:
        for each in self._told:
            if isinstance(each, float):
                await asyncio.sleep(each)
            else:
                yield each

    async def signal(self, number: int) -> None: ...
    async def resize(self, rows: int, columns: int) -> None: ...
    def give_up(self) -> None: ...


class Silent:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_, **__: None


async def failure_of(*sites: Site) -> LaunchFailure | None:
    async with asyncio.timeout(TIMEOUT_S):
        return await LaunchRun(sites, len(sites), cast("LaunchReporter", Silent())).run()


@pytest.mark.parametrize("pause_s", [0.0, 0.03], ids=["told first", "told after a rank failed"])
async def test_what_a_machine_s_owner_stops_is_no_failure_of_a_rank(pause_s: float) -> None:
    """So nothing starts it again (`attempts`)."""
    here = Site("attic", 0.01, Ended(0, 1))
    there = Site("cellar", pause_s, Ending("its owner ended it"), Ended(1, 143), Over("its owner"))
    failure = await failure_of(here, there)
    assert failure == LaunchFailure(launch_run.LOST, "cellar ended its ranks: its owner ended it")
    assert failure.rank is None


async def test_a_rank_whose_end_was_never_heard_may_have_failed() -> None:
    failure = await failure_of(Site("attic", Ended(0, 0)), Site("cellar", Over()))
    assert failure == LaunchFailure(launch_run.LOST, "how rank 1 on cellar ended isn't known")
    assert await failure_of(Site("attic", Ended(0, 0)), Site("cellar", Ended(1, 0))) is None


class Gone(Silent):
    """A terminal that has been closed."""

    def notice(self, _words: str) -> None:
        raise OSError(errno.EIO, "Input/output error")


class Stoppable(Site):
    """Its rank is ended by a signal alone, once somebody closes the terminal."""

    def __init__(self) -> None:
        super().__init__("attic")
        self.got = asyncio.Event()

    async def events(self) -> AsyncGenerator[ScriptEvent]:
        for _ in range(2):  # as the kernel does, to the session's leader and to its group
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0)
        await self.got.wait()
        yield Ended(0, 128 + signal.SIGINT)

    async def signal(self, number: int) -> None:
        assert number == signal.SIGINT
        self.got.set()


async def test_a_terminal_that_is_closed_stops_ranks_though_nothing_can_be_said_there() -> None:
    async with asyncio.timeout(TIMEOUT_S):
        failure = await LaunchRun([Stoppable()], 1, cast("LaunchReporter", Gone())).run()
    assert failure is not None
    assert failure.words == "stopped by SIGHUP"


class FailingAndStopped(Site):
    """Its rank fails, and before that is dealt with somebody stops the launch."""

    async def events(self) -> AsyncGenerator[ScriptEvent]:
        yield Ended(0, 3)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.01)


async def test_who_stops_a_launch_while_it_fails_wants_it_not_started_again() -> None:
    failure = await failure_of(FailingAndStopped("attic"))
    assert failure == LaunchFailure(3, "rank 0 ended with status 3", 0, is_final=True)
