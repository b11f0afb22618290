"""A machine's keys go where its own settings say, whatever a member orders: a real worker asks."""

from pathlib import Path
from typing import Any

import pytest

from jupiterd.cycle.gate.record import PAIRS_FILE, pair_lines
from jupiterd.cycle.judge.pair import Pair, PairKind
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.runtime.settings import load_settings
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import serving, unite
from tests.support.workers.answering_server import Answering, answer, answering

pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]

PAIR = Pair(str(PairKind.FOREIGN), "d" * 32, "c", "Bread is made of", "flour.", "stones.")


@pytest.fixture(autouse=True)
def has_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOX_API_KEY", "this machine's own")


def ask_judge(two: Node, folder: Path, served: Answering) -> WorkOrder:
    """Return an order to show the judge at that address the key of the machine that is ordered."""
    (folder / "pairs").mkdir()
    (folder / "pairs" / PAIRS_FILE).write_text(pair_lines([PAIR]))
    server = {"name": "j", "url": served.url, "model": "m", "api_key_env": "BOX_API_KEY"}
    params: dict[str, Any] = {"judge": "j", "server": server, "engine": "torch"}
    pairs = two.artifact_cache.store.ingest(folder / "pairs")
    return WorkOrder("c1/ask", 1, "ask_judge", params, {"pairs": pairs})


async def ordered(by: Node, at: Node, order: WorkOrder) -> peer_pb2.WorkEvent:
    """Return the last thing that is said of work that one member orders of another."""
    peer = by.peers.require(at.identity.node_id)
    with peer.channels.in_use() as channels:
        said = [event async for event in channels.control.RunWork(order.to_proto())]
    return said[-1]


async def test_no_member_has_a_key_sent_to_an_address_of_its_choice(tmp_path: Path) -> None:
    with answering(lambda *_: answer("A")) as served:
        async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
            await unite(one, two)
            said = await ordered(one, two, ask_judge(two, tmp_path, served))
        assert served.keys == [], "not even a request without it"
    origin = served.url.removesuffix("/v1")
    assert said.failure.code == "generator-refused"
    assert said.failure.message == (
        f"BOX_API_KEY isn't shown to {origin}: it isn't bound to that host"
    )
    assert f"write api_keys: {{BOX_API_KEY: {origin}}} into the jupiter.yaml" in said.failure.hint


async def test_a_key_goes_to_the_address_that_its_own_machine_binds_it_to(tmp_path: Path) -> None:
    with answering(lambda *_: answer("A")) as served:
        bound, _ = load_settings({"api_keys": {"BOX_API_KEY": served.url}}, {}, None)
        async with (
            serving(tmp_path, "one") as one,
            serving(tmp_path, "two", api_keys=bound.api_keys) as two,
        ):
            await unite(one, two)
            said = await ordered(one, two, ask_judge(two, tmp_path, served))
        assert said.HasField("finished"), said
        assert served.keys == ["Bearer this machine's own"] * 2
