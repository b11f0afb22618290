"""The ways to a peer are measured: straight, and through a relay on another port."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.errors import ConflictError, PeerUnreachableError
from jupiterd.ports import Address
from jupiterd.rpc import peer_pb2
from tests.support.daemon.two_nodes import TIMEOUT_S, address_of, serving, unite
from tests.unit.daemon.links.test_path_monitor import reached_twice


async def checked(asker: Node, asked: Node) -> Mapping[str, Any]:
    return await asker.commands.execute("check.links", {"node": asked.identity.node_id})


async def test_each_way_to_a_node_is_measured_and_counts_from_then_on(tmp_path: Path) -> None:
    async with reached_twice(tmp_path) as (one, other, peer, _):
        done = await checked(one, other)
        assert (done["node"], done["name"]) == (other.identity.node_id, "other")
        assert {row["target"] for row in done["paths"]} == set(peer.links.targets)
        for row in done["paths"]:
            assert row["answers"]
            assert row["note"] == ""
            assert row["rtt_ms"] > 0
            assert row["out_mbit_per_s"] > 1
            assert row["in_mbit_per_s"] > 1
        slower = {r["target"]: min(r["out_mbit_per_s"], r["in_mbit_per_s"]) for r in done["paths"]}
        seen = {row["target"]: row["mbit_per_s"] for row in peer.links.to_plain(0.0)}
        assert seen == slower
        assert [row["target"] for row in done["paths"] if row["active"]] == [peer.links.active]


async def test_a_way_that_does_not_answer_is_told_and_the_others_are_measured(
    tmp_path: Path,
) -> None:
    async with reached_twice(tmp_path) as (one, other, peer, relay):
        through = peer.links.active
        relay.cut()
        rows = {row["target"]: row for row in (await checked(one, other))["paths"]}
        assert not rows[through]["answers"]
        assert rows[through]["out_mbit_per_s"] is None
        assert rows[str(address_of(other))]["out_mbit_per_s"] > 1


async def test_a_node_that_is_being_measured_is_told_of_and_nothing_is_taken_for_a_figure(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        with other.bandwidth_probe.turn(TIMEOUT_S):
            (row,) = (await checked(one, other))["paths"]
        assert row["answers"]
        assert (row["note"], row["in_mbit_per_s"]) == ("a measurement runs already", None)


async def test_who_measures_already_is_not_asked_to_twice(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        with one.bandwidth_probe.turn(TIMEOUT_S), pytest.raises(ConflictError):
            await checked(one, other)


async def test_without_a_link_nothing_can_be_measured(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        with pytest.raises(PeerUnreachableError):
            await checked(one, other)


async def test_the_other_end_hears_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        peer = one.peers.require(other.identity.node_id)
        one.peers.learn(peer, peer.address)
        # Loopback can't be lost, so that it has no source; any other way has.
        monkeypatch.setattr(type(peer.links), "to_plain", _with_source(type(peer.links).to_plain))
        await checked(one, other)
        (row,) = other.peers.require(one.identity.node_id).links.to_plain(0.0)
        assert row["mbit_per_s"] > 1


def _with_source(to_plain: Any) -> Any:
    def told(links: Any, now: float) -> list[dict[str, Any]]:
        return [row | {"source": "127.0.0.1"} for row in to_plain(links, now)]

    return told


@pytest.mark.parametrize("bits_per_s", [0.0, -1.0, float("inf"), float("nan")])
async def test_a_bandwidth_that_is_none_is_not_taken(tmp_path: Path, bits_per_s: float) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "other") as other:
        await unite(one, other)
        where = str(address_of(other))
        for address in (where, "nonsense", str(Address("127.0.0.1", 1))):
            request = peer_pb2.NotePathRequest(address=address, bits_per_s=bits_per_s)
            way = other.peers.require(one.identity.node_id).channels.control
            told = way.NotePath(request, timeout=TIMEOUT_S)
            if math.isfinite(bits_per_s):
                await told
                continue
            with pytest.raises(grpc.aio.AioRpcError, match="out of bounds"):
                await told
        (row,) = one.peers.require(other.identity.node_id).links.to_plain(0.0)
        assert row["mbit_per_s"] is None


async def test_ways_between_two_others_are_measured_by_one_of_them(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "six") as six,
    ):
        await unite(one, two, six)
        pair = {"node": six.identity.node_id, "from": two.identity.node_id}
        (row,) = (await one.commands.execute("check.links", pair))["paths"]
        assert row["target"] == str(address_of(six))
        assert row["answers"]
        assert row["active"]
        assert min(row["rtt_ms"], row["out_mbit_per_s"], row["in_mbit_per_s"]) > 0
        with (
            two.bandwidth_probe.turn(TIMEOUT_S),
            pytest.raises(ConflictError, match="runs already"),
        ):
            await one.commands.execute("check.links", pair)


async def test_what_another_could_not_measure_is_no_figure(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, "one") as one,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "six") as six,
    ):
        await unite(one, two, six)
        pair = {"node": six.identity.node_id, "from": two.identity.node_id}
        with six.bandwidth_probe.turn(TIMEOUT_S):
            (row,) = (await one.commands.execute("check.links", pair))["paths"]
        assert (row["out_mbit_per_s"], row["note"]) == (None, "a measurement runs already")
        with pytest.raises(PeerUnreachableError):
            await one.commands.execute("check.links", pair | {"node": "77" * 16})
