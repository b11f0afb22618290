"""How much a path carries, between two real nodes on loopback."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.links import bandwidth_probe
from jupiterd.daemon.links.bandwidth_probe import (
    MAX_BYTES,
    MAX_PIECE_BYTES,
    BandwidthProbe,
    bits_per_s_in,
    bits_per_s_out,
)
from jupiterd.errors import ConflictError, MalformedError, NotAMemberError, TooLargeError
from jupiterd.net.call_guard import EACH_MEMBER
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc import peer_pb2
from jupiterd.rpc.peer_pb2_grpc import PeerStub
from tests.support.daemon.two_nodes import TIMEOUT_S, found, serving, unite
from tests.unit.daemon.api.test_peer_service import channels


@asynccontextmanager
async def two(folder: Path) -> AsyncGenerator[tuple[Node, PeerStub]]:
    """A node, and the way to it of another member."""
    async with serving(folder, "one") as one, serving(folder, "other") as other:
        await unite(one, other)
        yield one, other.peers.require(one.identity.node_id).channels.control


async def given(way: PeerStub) -> list[int]:
    call = way.GiveBytes(peer_pb2.GiveBytesRequest(), timeout=TIMEOUT_S)
    return [len(piece.data) async for piece in call]


async def sent(*sizes: int) -> AsyncIterator[peer_pb2.MeasuredBytes]:
    for size_bytes in sizes:
        yield peer_pb2.MeasuredBytes(data=bytes(size_bytes))


async def silent() -> AsyncIterator[peer_pb2.MeasuredBytes]:
    await asyncio.Event().wait()
    yield peer_pb2.MeasuredBytes()


async def test_both_directions_are_measured(tmp_path: Path) -> None:
    async with two(tmp_path) as (_, way):
        assert await bits_per_s_in(way) > 1e6
        assert await bits_per_s_out(way) > 1e6


async def test_what_is_sent_is_bounded_and_far_fewer_messages_than_a_member_may_send(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth_probe, "SENDING_S", TIMEOUT_S)
    async with two(tmp_path) as (_, way):
        sizes = await given(way)
    assert sum(sizes) == MAX_BYTES
    assert max(sizes) == MAX_PIECE_BYTES
    assert len(sizes) < EACH_MEMBER.burst / 4


async def test_when_the_time_is_over_nothing_more_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bandwidth_probe, "SENDING_S", 0.02)
    async with two(tmp_path) as (_, way):
        assert 0 < sum(await given(way)) < MAX_BYTES


async def test_the_other_end_can_not_claim_more_than_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two(tmp_path) as (one, way):

        async def boast(pieces: AsyncIterator[peer_pb2.MeasuredBytes]) -> int:
            async for _ in pieces:
                pass
            return 1 << 62

        monkeypatch.setattr(one.bandwidth_probe, "take", boast)
        assert await bits_per_s_out(way) < 1e12


async def test_a_second_measurement_at_once_is_refused_and_a_later_one_is_not(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as (one, way):
        with one.bandwidth_probe.turn(TIMEOUT_S):
            for call in (bits_per_s_in, bits_per_s_out):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call(way)
                assert isinstance(from_rpc(refused.value, "one"), ConflictError)
        assert await bits_per_s_in(way) > 0


async def test_of_two_that_begin_at_once_one_is_refused(tmp_path: Path) -> None:
    async with two(tmp_path) as (_, way):
        done = await asyncio.gather(given(way), given(way), return_exceptions=True)
    assert len([one for one in done if isinstance(one, list)]) == 1


async def test_strangers_measure_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "stranger") as stranger:
        await found(one)
        way = channels(stranger, one)
        for call in (bits_per_s_in, bits_per_s_out):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(way.control)
            assert isinstance(from_rpc(refused.value, "one"), NotAMemberError)
        await way.close()


async def test_nothing_is_sent_before_the_other_end_wants_it(tmp_path: Path) -> None:
    drawn: list[int] = []

    def pieces() -> Iterator[peer_pb2.MeasuredBytes]:
        for number in range(3):
            drawn.append(number)
            yield peer_pb2.MeasuredBytes(data=b"1234")

    async with two(tmp_path) as (one, way):
        with one.bandwidth_probe.turn(TIMEOUT_S), pytest.raises(grpc.aio.AioRpcError) as refused:
            await way.TakeBytes(pieces(), timeout=TIMEOUT_S)
        assert isinstance(from_rpc(refused.value, "one"), ConflictError)
        assert drawn == []
        assert (await way.TakeBytes(pieces(), timeout=TIMEOUT_S)).size_bytes == 12
        assert drawn == [0, 1, 2]


async def test_who_sends_without_end_is_stopped() -> None:
    pieces = MAX_BYTES // MAX_PIECE_BYTES
    assert await BandwidthProbe().take(sent(*[MAX_PIECE_BYTES] * pieces)) == MAX_BYTES
    with pytest.raises(TooLargeError):
        await BandwidthProbe().take(sent(*[MAX_PIECE_BYTES] * pieces, 1))


async def test_who_sends_nothing_holds_the_turn_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bandwidth_probe, "CALL_S", 0.05)
    one = BandwidthProbe()
    with pytest.raises(MalformedError):
        await one.take(silent())
    with one.turn(TIMEOUT_S):
        pass


def test_a_turn_that_never_ends_is_over_when_its_time_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(bandwidth_probe, "now_s", lambda: now_s)
    one = BandwidthProbe()
    with one.turn(5.0):
        now_s = 104.9
        with pytest.raises(ConflictError), one.turn(5.0):
            pass
        now_s = 105.0
        with one.turn(5.0):
            pass
