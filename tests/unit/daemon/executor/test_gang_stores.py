"""A gang's store is held by rank 0's daemon, and asked by those alone who have ranks.

Three real daemons' services on loopback: one holds the store, one has a rank, one has none.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupiterd.cluster.training.store_place import StorePlace
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.executor import gang_stores, store_calls
from jupiterd.errors import MalformedError
from jupiterd.protocol.frames import StoreAnswered, StoreAsked, unpacked_values
from tests.support.daemon.two_nodes import serving, unite

pytestmark = pytest.mark.net

NAME = "cycle/r1/3"
RANKS = 100
KEYS_AT_ONCE = 64


@asynccontextmanager
async def three(folder: Path) -> AsyncGenerator[tuple[Node, Node, Node]]:
    async with serving(folder, "a") as a, serving(folder, "b") as b, serving(folder, "c") as c:
        await unite(a, b, c)
        yield a, b, c


def params(holder: Node, *members: Node, rank: int = 0) -> dict[str, Any]:
    gang = [node.identity.node_id for node in (holder, *members)]
    return {"rank": rank, gang_stores.PARAM: StorePlace.of(NAME, gang).to_plain()}


async def asked(
    node: Node,
    where: dict[str, Any],
    verb: str,
    *keys: str,
    values: tuple[bytes, ...] = (),
    within_s: float = 5.0,
) -> StoreAnswered:
    """Ask as a rank on that node."""
    answers: list[StoreAnswered] = []
    frame = StoreAsked(1, verb, keys, values, within_s)
    await node.worker_runner.store_calls.serve(where, frame, answers.append)
    (answer,) = answers
    return answer


async def test_ranks_of_two_nodes_find_what_the_other_has_set_and_no_port_is_open_for_it(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as (holder, other, _):
        where, ports = params(holder, other), listening()
        waiting = asyncio.ensure_future(asked(other, where, "get", "0"))
        with holder.worker_runner.stores.opened(where):
            assert listening() == ports
            assert (await asked(holder, where, "set", "0", values=(b"here",))).code == ""
            assert (await waiting).value == b"here", "who comes before the store waits for it"
            waiting = asyncio.ensure_future(asked(holder, where, "wait", "0", "1"))
            assert (await asked(other, where, "set", "1", values=(b"there",))).code == ""
            assert (await waiting).value == b"1"


async def test_a_member_without_a_rank_in_that_attempt_neither_reads_nor_sets(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as (holder, other, outsider):
        where = params(holder, other)
        with holder.worker_runner.stores.opened(where):
            await asked(holder, where, "set", "0", values=(b"here",))
            for verb, values in (("get", ()), ("set", (b"mine",))):
                refused = await asked(outsider, where, verb, "0", values=values)
                assert refused.code == "refused"
                assert "has no rank in this attempt" in refused.message
            assert (await asked(other, where, "get", "0")).value == b"here"


async def test_a_store_ends_with_rank_0_and_so_does_what_waits_there(tmp_path: Path) -> None:
    async with three(tmp_path) as (holder, other, _):
        where = params(holder, other)
        with holder.worker_runner.stores.opened(where):
            waiting = asyncio.ensure_future(asked(other, where, "get", "1"))
            await asked(other, where, "set", "0", values=(b"here",))
        assert (await waiting).code == "not-found"
        assert (await asked(other, where, "get", "0")).code == "not-found"
        with holder.worker_runner.stores.opened(
            where
        ):  # another one of that name knows nothing of it
            assert (await asked(other, where, "count")).value == b"0"


async def test_what_does_not_come_is_named_after_the_time_that_the_rank_gives_it(
    tmp_path: Path,
) -> None:
    async with three(tmp_path) as (holder, other, _):
        where = params(holder, other)
        with holder.worker_runner.stores.opened(where):
            late = await asked(other, where, "wait", "0//cpu//0/1", within_s=0.05)
        assert late.code == "timed-out"
        assert "0//cpu//0/1 isn't in the store of cycle/r1/3 after 0.05 s" in late.message


async def test_a_hundred_ranks_of_two_nodes_meet_without_a_wait_or_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_calls, "SOON_S", None)  # who had to wait would fail

    async def meet(node: Node, where: dict[str, Any], rank: int) -> None:
        """Ask what a rank of gloo asks: it tells its address, and reads all others'."""
        address = b"%4d" % rank + bytes(950)
        told = [await asked(node, where, "set", f"0/{rank}", values=(address,))]
        for first in range(0, RANKS, KEYS_AT_ONCE):
            keys = [f"0/{other}" for other in range(first, min(first + KEYS_AT_ONCE, RANKS))]
            told.append(await asked(node, where, "get_all", *keys))
            found = unpacked_values(told[-1].value)
            assert [int(value[:4]) for value in found] == [int(key[2:]) for key in keys]
        assert {(answer.code, answer.message) for answer in told} == {("", "")}

    async with three(tmp_path) as (holder, other, _):
        where = params(holder, other)
        for _ in range(2):  # and anew, right after one of them was killed
            with holder.worker_runner.stores.opened(where):
                nodes = (holder, other) * (RANKS // 2)
                await asyncio.gather(*(meet(node, where, rank) for rank, node in enumerate(nodes)))


async def test_many_questions_are_asked_at_a_pace_at_which_all_are_answered(tmp_path: Path) -> None:
    async with three(tmp_path) as (holder, other, _):
        where = params(holder, other)
        with holder.worker_runner.stores.opened(where):
            for _ in range(8):
                many = (asked(other, where, "add", "n", values=(b"1",)) for _ in range(50))
                answers = await asyncio.gather(*many)
                assert {(answer.code, answer.message) for answer in answers} == {("", "")}
            assert (await asked(holder, where, "get", "n")).value == b"400"


async def test_so_many_wait_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gang_stores, "MAX_WAITING", 2)
    async with three(tmp_path) as (holder, other, _):
        where = params(holder, other)
        with holder.worker_runner.stores.opened(where):
            waiting = [asyncio.ensure_future(asked(holder, where, "get", "0")) for _ in range(2)]
            await asyncio.sleep(0)
            assert (await asked(other, where, "get", "0")).code == "too-large"
            for each in waiting:
                each.cancel()


async def test_who_has_no_rank_takes_no_place_from_those_who_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gang_stores, "MAX_WAITING", 2)
    async with three(tmp_path) as (holder, other, outsider):
        where = params(holder, other)
        asking = [asked(outsider, where, "get", "0") for _ in range(3)]
        waiting = [asyncio.ensure_future(each) for each in asking]
        ended, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [each.result().code for each in ended] == ["too-large"]
        early = asyncio.ensure_future(asked(other, where, "get", "0"))
        with holder.worker_runner.stores.opened(where):
            assert (await asked(holder, where, "set", "0", values=(b"here",))).code == ""
            assert (await early).value == b"here"
        assert {(await each).code for each in waiting} == {"too-large", "refused"}


async def test_whatever_goes_wrong_with_a_question_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise ValueError("a hole")

    async with serving(tmp_path, "a") as holder:
        monkeypatch.setattr(holder.worker_runner.stores, "answer", broken)
        answer = await asked(holder, params(holder), "count")
        assert (answer.code, "a hole" in answer.message) == ("failed", True)


async def test_an_order_for_another_node_opens_nothing_here(tmp_path: Path) -> None:
    async with three(tmp_path) as (holder, other, _):
        where = params(other, holder)
        with pytest.raises(MalformedError), holder.worker_runner.stores.opened(where):
            pass
        with holder.worker_runner.stores.opened(params(holder, rank=1)):
            late = await asked(holder, params(holder), "count", within_s=0.01)
        assert "is not open" in late.message


def listening() -> set[int]:
    """Return the ports that this process listens on."""
    found = psutil.Process().net_connections("inet")
    return {
        c.laddr.port
        for c in found
        if c.status == psutil.CONN_LISTEN and c.type == socket.SOCK_STREAM
    }
