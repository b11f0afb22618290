"""Where ranks meet that are all on one machine, and how the last rank of a ring waits."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.daemon.gangs import rendezvous
from jupiterd.daemon.gangs.rendezvous import RingListeners, prove_routes
from tests.support.daemon.two_nodes import lead, serving


async def test_ranks_of_one_machine_alone_meet_over_its_loopback(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as node:
        await lead(node)
        assert node.leading is not None
        own = node.identity.node_id
        places = await prove_routes(node.leading.connectivity, (own, own), reserve=False)
        assert list(places) == [own]
        assert places[own].host == "127.0.0.1"
        assert places[own].interface.startswith("lo")


async def test_the_last_rank_of_a_ring_waits_until_all_others_listen() -> None:
    listeners = RingListeners()
    listeners.add()
    waiting = asyncio.ensure_future(listeners.wait_for(2))
    await asyncio.sleep(0)
    assert not waiting.done()
    listeners.add()
    await asyncio.wait_for(waiting, 5.0)


async def test_the_last_rank_of_a_ring_dials_in_the_end_even_if_the_others_say_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rendezvous, "LISTEN_TIMEOUT_S", 0.01)
    await asyncio.wait_for(RingListeners().wait_for(1), 5.0)
