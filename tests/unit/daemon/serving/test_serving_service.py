"""Answers from another node, over the real wire: whole, cut, refused, and of a lost peer."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from jupiterd.cluster.facts.facts import NodeRemoved
from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.serving import remote_engine, serving_service
from jupiterd.daemon.serving.answer_wire import MAX_BODY_BYTES, MAX_PIECE_BYTES, order_to_proto
from jupiterd.daemon.serving.answering import Answer
from jupiterd.daemon.serving.remote_engine import RemoteEngine
from jupiterd.errors import (
    BusyError,
    EngineLostError,
    JupiterError,
    MalformedError,
    NotAMemberError,
    PeerUnreachableError,
    TooLargeError,
)
from jupiterd.ids import ArtifactId
from jupiterd.protocol.call_errors import from_rpc
from jupiterd.rpc.serving_pb2 import AnswerAsked, AnswerOrder, AnswerPiece
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, unite, until
from tests.support.serving.written_engines import EVENTS, JSON, WrittenEngines, chat, event
from tests.support.serving.written_nodes import give_engines

MODEL = ServedModel("first-run", ArtifactId("a" * 64))
SOON_S = 2.0


@dataclass
class Two:
    """A node that asks and one that answers."""

    one: Node
    two: Node
    engines: WrittenEngines

    @property
    def engine(self) -> RemoteEngine:
        return RemoteEngine(self.one.peers, self.two.identity.node_id)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncGenerator[Two]:
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as other:
        await unite(one, other)
        yield Two(one, other, give_engines(other))


async def whole(engine: RemoteEngine, request: AnswerRequest) -> bytes:
    async with asyncio.timeout(TIMEOUT_S), engine.answering(MODEL, request) as answer:
        return b"".join([chunk async for chunk in answer.chunks])


async def test_an_answer_comes_as_its_engine_wrote_it(two: Two) -> None:
    async with two.engine.answering(MODEL, chat(3, seed=5)) as answer:
        assert (answer.status, answer.content_type) == (200, EVENTS)
        got = b"".join([chunk async for chunk in answer.chunks])
    assert got == b"".join(event(MODEL, number) for number in range(3)) + b"data: [DONE]\n\n"
    assert two.engines.asked == [chat(3, seed=5)]
    await until(lambda: two.engines.ended == ["whole"])


async def test_one_that_is_not_streamed_comes_whole(two: Two) -> None:
    async with two.engine.answering(MODEL, chat(7, is_streamed=False)) as answer:
        assert answer.content_type == JSON
        got = b"".join([chunk async for chunk in answer.chunks])
    assert json.loads(got)["usage"] == {"completion_tokens": 7}


async def test_what_the_model_has_no_place_for_is_told_where_it_was_asked(two: Two) -> None:
    asked = chat(1)
    offered = replace(asked, body={**asked.body, "tools": [{"type": "function"}]})
    async with two.engine.answering(MODEL, offered) as answer:
        assert answer.left_out == "tools"
    async with two.engine.answering(MODEL, asked) as answer:
        assert not answer.left_out


async def test_what_is_longer_than_a_piece_arrives_in_pieces(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = bytes(range(256)) * (MAX_PIECE_BYTES // 100)

    async def chunks(*_: object) -> AsyncGenerator[bytes]:
        yield long

    monkeypatch.setattr(two.engines, "_chunks", chunks)
    assert await whole(two.engine, chat()) == long


async def test_leaving_an_answer_ends_its_generation_at_once(two: Two) -> None:
    two.engines.token_s = 0.01
    async with two.engine.answering(MODEL, chat(100_000)) as answer:
        assert await anext(answer.chunks) == event(MODEL, 0)
    async with asyncio.timeout(1.0):
        await until(lambda: two.engines.ended == ["cut"])


async def test_a_cancelled_request_ends_its_generation_at_once(two: Two) -> None:
    two.engines.token_s = 60.0
    task = asyncio.ensure_future(whole(two.engine, chat()))
    await until(lambda: two.engines.running == [MODEL])
    task.cancel()
    async with asyncio.timeout(1.0):
        await until(lambda: two.engines.ended == ["cut"])
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_model_that_takes_long_to_load_is_waited_for(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_engine, "SILENT_S", 0.3)
    monkeypatch.setattr(serving_service, "BEAT_S", 0.05)
    two.engines.load_s = 0.6
    assert (await whole(two.engine, chat(1))).endswith(b"[DONE]\n\n")


@pytest.mark.parametrize(
    "error", [BusyError("all are at work", "wait", 17.0), EngineLostError("the engine died", "ask")]
)
async def test_what_an_engine_refuses_with_arrives_as_it_was(two: Two, error: JupiterError) -> None:
    two.engines.refuses = lambda _: error
    with pytest.raises(type(error)) as raised:
        await whole(two.engine, chat())
    assert (raised.value.message, raised.value.hint) == (error.message, error.hint)
    if isinstance(raised.value, BusyError):
        assert raised.value.retry_after_s == 17.0


async def test_an_engine_that_dies_in_mid_answer_ends_it_with_an_error(two: Two) -> None:
    two.engines.token_s = 0.01
    async with two.engine.answering(MODEL, chat(100_000)) as answer:
        await anext(answer.chunks)
        await two.engines.unload(MODEL)
        with pytest.raises(EngineLostError, match="the engine died"):
            async for _ in answer.chunks:
                pass


async def test_a_fault_of_an_engine_is_told_and_nothing_hangs(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(two.engines, "_chunks", fault)
    with pytest.raises(EngineLostError, match="a fault in Jupiter"):
        await whole(two.engine, chat())


async def test_eight_answers_are_lost_at_once_where_the_link_is_closed(two: Two) -> None:
    two.engines.token_s = 0.05
    ended = [asyncio.ensure_future(whole(two.engine, chat(100_000))) for _ in range(8)]
    await until(lambda: len(two.engines.running) == 8)
    async with asyncio.timeout(SOON_S):
        await two.one.peers.unlink(two.two.identity.node_id)
        found = await asyncio.gather(*ended, return_exceptions=True)
    assert all(isinstance(each, EngineLostError) for each in found), found
    async with asyncio.timeout(SOON_S):
        await until(lambda: two.engines.ended == ["cut"] * 8)


class Silent:
    """Engines of a node that hangs: nothing comes of them, and no sign of life."""

    @asynccontextmanager
    async def answering(self, model: ServedModel, _: AnswerRequest) -> AsyncGenerator[Answer]:
        yield Answer(200, EVENTS, self._one(model))

    def ready(self) -> list[ServedModel]:
        return []

    loading = ready

    async def _one(self, model: ServedModel) -> AsyncGenerator[bytes]:
        yield event(model, 0)
        await asyncio.Event().wait()


async def test_a_peer_that_merely_hangs_ends_its_answers_within_two_seconds(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_service, "BEAT_S", 60.0)
    monkeypatch.setattr(two.two.serving.local, "_engines", Silent())
    async with AsyncExitStack() as stack:
        answer = await stack.enter_async_context(two.engine.answering(MODEL, chat()))
        assert await anext(answer.chunks) == event(MODEL, 0)
        async with asyncio.timeout(SOON_S):
            with pytest.raises(EngineLostError, match="two is heard no more"):
                await anext(answer.chunks)


async def test_an_answer_ends_whose_caller_is_heard_no_more(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_service, "CALLER_SILENT_S", 0.3)
    monkeypatch.setattr(remote_engine, "ASK_S", 60.0)
    two.engines.token_s = 60.0
    with pytest.raises(EngineLostError):
        await whole(two.engine, chat())
    assert two.engines.ended == ["cut"]


async def test_whoever_asks_for_nothing_holds_no_place(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_service, "CALLER_SILENT_S", 0.3)

    async def nothing() -> AsyncGenerator[AnswerAsked]:
        await asyncio.Event().wait()
        yield AnswerAsked()

    peer = two.one.peers.require(two.two.identity.node_id)
    call = peer.channels.serving.Answer(nothing())
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            _ = [piece async for piece in call]
    assert isinstance(from_rpc(raised.value, "two"), MalformedError)


async def test_a_node_without_a_link_is_not_waited_for(two: Two) -> None:
    await two.one.peers.unlink(two.two.identity.node_id)
    with pytest.raises(PeerUnreachableError):
        await whole(two.engine, chat())


async def test_a_node_of_before_there_was_such_a_service_is_told_apart_from_a_lost_one(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = two.one.peers.require(two.two.identity.node_id)
    unknown = peer.channels._channel(1 << 20).stream_stream(
        "/jupiter.v1.Serving/OfLater",
        request_serializer=AnswerAsked.SerializeToString,
        response_deserializer=AnswerPiece.FromString,
    )
    monkeypatch.setattr(peer.channels.serving, "Answer", unknown)
    with pytest.raises(PeerUnreachableError, match="two runs an older Jupiter"):
        await whole(two.engine, chat())


async def test_a_request_that_is_too_long_is_not_sent(two: Two) -> None:
    with pytest.raises(TooLargeError):
        await whole(two.engine, chat(stop="x" * MAX_BODY_BYTES))
    assert not two.engines.asked


async def refused(two: Two, order: AnswerOrder) -> JupiterError:
    async def asked() -> AsyncIterator[AnswerAsked]:
        yield AnswerAsked(order=order)
        await asyncio.Event().wait()

    peer = two.one.peers.require(two.two.identity.node_id)
    call = peer.channels.serving.Answer(asked())
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            _ = [piece async for piece in call]
    return from_rpc(raised.value, "two")


def order_with(**changed: Any) -> AnswerOrder:
    order = order_to_proto(MODEL, chat())
    for name, value in changed.items():
        setattr(order, name, value)
    return order


@pytest.mark.parametrize(
    "order",
    [
        AnswerOrder(),
        order_with(model=""),
        order_with(artifact="../../etc"),
        order_with(body=b"\xff"),
        order_with(body=b"[]"),
        order_with(body=b'{"temperature": NaN}'),
        order_with(body=b'{"messages": ' + b"[" * 40 + b"]" * 40 + b"}"),
        order_with(body=b"[" * 100_000),
    ],
    ids=range(8),
)
async def test_what_is_no_request_is_refused_before_an_engine_sees_it(
    two: Two, order: AnswerOrder
) -> None:
    assert isinstance(await refused(two, order), MalformedError)
    assert not two.engines.asked


async def test_a_request_that_is_too_long_is_refused_there_as_well(two: Two) -> None:
    order = order_with(body=b'{"x": "' + b"y" * MAX_BODY_BYTES + b'"}')
    assert isinstance(await refused(two, order), TooLargeError)


async def test_who_is_no_member_any_more_gets_no_answer(two: Two) -> None:
    named = two.two.replica.state.roster.admissions_of(two.one.identity.node_id)
    await two.two.replica.append(2, [NodeRemoved(two.one.identity.node_id, named, {})])
    with pytest.raises((NotAMemberError, EngineLostError)):  # or no connection at all
        await whole(two.engine, chat())
    assert not two.engines.asked


async def test_more_than_one_machine_can_answer_are_told_to_wait(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving_service, "MAX_CALLS", 0)
    with pytest.raises(BusyError, match="as many as it can"):
        await whole(two.engine, chat())


async def test_answers_of_one_peer_beyond_its_places_wait_here(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_engine, "MAX_AT_ONCE", 2)
    two.engines.token_s = 0.01
    engine, most = two.engine, 0

    async def one_of_many() -> None:
        nonlocal most
        async with engine.answering(MODEL, chat(5)) as answer:
            async for _ in answer.chunks:
                most = max(most, len(two.engines.running))

    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(*(one_of_many() for _ in range(12)))
    assert most <= 3  # the end of one may overlap the next
    await until(lambda: two.engines.ended == ["whole"] * 12)
