"""Work that is finished though whoever waits for it is cancelled."""

import asyncio

import pytest

from jupiterd.processes.uncancelled import finished


async def test_a_cancellation_is_heard_once_the_work_is_done() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        begun.set()
        await may_end.wait()
        done.append("the work")

    waiting = asyncio.ensure_future(finished(work()))
    await begun.wait()
    waiting.cancel()
    asyncio.get_running_loop().call_soon(may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == ["the work"]


async def test_what_comes_of_the_work_is_returned_and_what_fails_is_told() -> None:
    async def answer() -> int:
        return 7

    async def fail() -> None:
        raise ValueError("no")

    assert await finished(answer()) == 7
    with pytest.raises(ValueError, match="no"):
        await finished(fail())
