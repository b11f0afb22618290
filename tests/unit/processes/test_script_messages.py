import contextlib

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.errors import MalformedError, RefusedError, TooLargeError
from jupiterd.processes.script_messages import (
    event_from_proto,
    event_to_proto,
    order_from_proto,
    order_to_proto,
)
from jupiterd.processes.script_plan import PortRange, RankOrder, ScriptOrder
from jupiterd.processes.scripts.events import Ended, Notice, Over, Printed, Skipped
from jupiterd.rpc import script_pb2

RANKS = (RankOrder(0, {"RANK": "0"}, {"OMP_NUM_THREADS": "2"}, "[]"), RankOrder(1, {"RANK": "1"}))
ORDER = ScriptOrder(
    ("python", "train.py"),
    "/home/me",
    RANKS,
    "10.0.0.1",
    4000,
    open_ports=(PortRange(80, 80), PortRange(8000, 8010)),
)


def test_an_order_and_its_events_arrive_as_they_were_sent():
    assert order_from_proto(order_to_proto(ORDER)) == ORDER
    printed = Printed(-1, is_error=True, data=b"\xff\n")
    told = (Ended(3, 137), Skipped(9), Over("why", "conflict", "do"), Notice("mind the gap"))
    for event in (printed, *told):
        assert event_from_proto(event_to_proto(event)) == event


@pytest.mark.parametrize(
    "bad",
    [
        ScriptOrder((), "/home/me", RANKS),
        ScriptOrder(("",), "/home/me", RANKS),
        ScriptOrder(("python",), "/home/me", ()),
        ScriptOrder(("python",), "relative", RANKS),
        ScriptOrder(("python",), "", RANKS),
        ScriptOrder(("py\0thon",), "/home/me", RANKS),
        ScriptOrder(("python",), "/home/me", (RANKS[0], RANKS[0])),
        ScriptOrder(("python",), "/home/me", (RankOrder(9999, {}),)),
        ScriptOrder(("python",), "/home/me", RANKS, open_ports=(PortRange(9, 8),)),
        ScriptOrder(("python",), "/home/me", RANKS, open_ports=(PortRange(1, 65536),)),
        ScriptOrder(("python",), "/home/me", (RankOrder(0, {"A=B": "1"}),)),
        ScriptOrder(("python",), "/home/me", (RankOrder(0, {"A": "1\0"}),)),
        ScriptOrder(("python",), "/home/me", RANKS, "10.0.0.1", 70000),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(bad: ScriptOrder):
    with pytest.raises(MalformedError):
        order_from_proto(order_to_proto(bad))


@pytest.mark.parametrize(
    "large",
    [
        ScriptOrder(("a",) * 2000, "/", RANKS),
        ScriptOrder(("a" * 70000,), "/", RANKS),
        ScriptOrder(("a",), "/", tuple(RankOrder(rank, {}) for rank in range(65))),
        ScriptOrder(("a",), "/", (RankOrder(0, {f"V{n}": "" for n in range(300)}),)),
        ScriptOrder(("a",), "/", (RankOrder(0, {"V": "v" * 70000}),)),
        ScriptOrder(("a",), "/", (RankOrder(0, {}, {}, "h" * 70000),)),
    ],
)
def test_an_order_that_is_too_large_is_refused(large: ScriptOrder):
    with pytest.raises(TooLargeError):
        order_from_proto(order_to_proto(large))


TEXTS = st.text(max_size=8)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_order_or_refused(raw: bytes):
    with contextlib.suppress(DecodeError, RefusedError):
        order_from_proto(script_pb2.ScriptOrder.FromString(raw))


@given(
    st.lists(TEXTS, max_size=3),
    TEXTS | st.just("/home/me"),
    st.lists(st.tuples(st.integers(0, 2000), st.dictionaries(TEXTS, TEXTS, max_size=2))),
)
def test_what_is_taken_in_can_be_run(argv: list[str], folder: str, ranks: list):
    message = script_pb2.ScriptOrder(argv=argv, folder=folder)
    message.ranks.extend(script_pb2.ScriptRank(rank=r, variables=told) for r, told in ranks)
    try:
        order = order_from_proto(message)
    except RefusedError:
        return
    texts = [*order.argv, order.folder]
    texts += [text for rank in order.ranks for told in rank.variables.items() for text in told]
    assert order.argv[0]
    assert order.folder.startswith("/")
    assert not any("\0" in text for text in texts)
