"""Who waits at a leader: few, not for ever, and not again and again."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.membership.approval import (
    NONCE_BYTES,
    ApprovalAnswer,
    ApprovalQuestion,
    commit,
)
from jupiterd.cluster.membership.pending_joins import (
    CROWDED,
    FULL,
    MAX_NAME_BYTES,
    MAX_OF_A_HOST,
    MAX_TRIES,
    MAX_WAITING,
    MISMATCH,
    PAUSE_S,
    PAUSED,
    REVEAL_S,
    TOO_OFTEN,
    WAIT_S,
    Applicant,
    PendingJoin,
    PendingJoins,
    clean_name,
    from_telemetry,
    to_plain,
)
from jupiterd.errors import NotFoundError, RefusedError
from jupiterd.ids import NodeId
from tests.support.cluster.building import CLUSTER, NODES

LEADER, NEW, OTHER = NODES
NONCE, LEADERS = b"n" * NONCE_BYTES, b"l" * NONCE_BYTES


def key(number: int) -> NodeId:
    return NodeId(f"{number:032x}")


def waiting_list() -> PendingJoins:
    return PendingJoins(CLUSTER, LEADER, 0.0)


def applicant(node: NodeId, host: str = "") -> Applicant:
    return Applicant(node, "new", b"certificate", host or f"host of {node}")


def begin(
    leader: PendingJoins, now: float, node: NodeId = NEW, nonce: bytes = NONCE, host: str = ""
) -> ApprovalAnswer:
    """Let a node commit to a nonce."""
    return leader.ask(now, applicant(node, host), ApprovalQuestion(commit(node, nonce)), LEADERS)


def show(
    leader: PendingJoins, now: float, node: NodeId = NEW, nonce: bytes = NONCE
) -> ApprovalAnswer:
    """Let a node show the nonce that it has committed to."""
    return leader.ask(now, applicant(node), ApprovalQuestion(commit(node, nonce), nonce), LEADERS)


def settle(
    leader: PendingJoins, now: float, node: NodeId = NEW, nonce: bytes = NONCE
) -> ApprovalAnswer:
    begin(leader, now, node, nonce)
    return show(leader, now, node, nonce)


def test_nobody_is_shown_before_there_are_words() -> None:
    leader = waiting_list()
    assert begin(leader, 0.0) == ApprovalAnswer(LEADERS)
    assert leader.shown(0.0) == []
    with pytest.raises(NotFoundError):
        leader.check(0.0, NEW, None)
    assert show(leader, 0.0) == ApprovalAnswer(LEADERS, is_revealed=True)
    assert [seen.node for seen in leader.shown(0.0)] == [NEW]


def test_a_nonce_that_was_not_committed_to_is_refused_and_counts_as_a_try() -> None:
    leader = waiting_list()
    begin(leader, 0.0)
    wrong = ApprovalQuestion(commit(NEW, NONCE), b"x" * NONCE_BYTES)
    assert leader.ask(0.0, applicant(NEW), wrong, LEADERS) == ApprovalAnswer(reason=MISMATCH)
    assert leader.shown(0.0) == []
    assert leader._tries[NEW][0] == 1


def test_a_nonce_is_taken_once() -> None:
    leader = waiting_list()
    settle(leader, 0.0)
    (before,) = leader.shown(0.0)
    assert show(leader, 0.0) == ApprovalAnswer(reason=MISMATCH)
    assert leader.shown(0.0) == [before]
    assert leader._tries[NEW][0] == 1


def test_a_nonce_without_an_exchange_begins_none() -> None:
    leader = waiting_list()
    assert show(leader, 0.0) == ApprovalAnswer()
    assert leader.shown(0.0) == []


def test_who_gives_no_sign_for_five_minutes_is_let_go_and_who_asks_on_stays() -> None:
    leader = waiting_list()
    settle(leader, 0.0)
    settle(leader, 0.0, OTHER)
    begin(leader, WAIT_S - 1)
    assert [seen.node for seen in leader.shown(WAIT_S - 0.5)] == [NEW, OTHER]
    assert [seen.node for seen in leader.shown(WAIT_S + 0.5)] == [NEW]
    assert leader.shown(2 * WAIT_S) == []


def test_an_exchange_that_is_left_open_is_over_soon_and_counts_as_a_try() -> None:
    leader = waiting_list()
    begin(leader, 0.0)
    begin(leader, REVEAL_S - 1)
    leader.shown(REVEAL_S)
    assert leader._entries == {}
    assert leader._tries[NEW][0] == 1


def test_no_more_than_eight_wait_at_once() -> None:
    leader = waiting_list()
    for number in range(MAX_WAITING):
        assert settle(leader, 10.0 * number, key(number)).is_revealed
    late = 10.0 * MAX_WAITING
    assert begin(leader, late, NEW) == ApprovalAnswer(reason=FULL)
    leader.drop(key(0))
    assert begin(leader, late, NEW) == ApprovalAnswer(LEADERS)


def test_whoever_has_many_keys_takes_two_places_and_no_more() -> None:
    leader = waiting_list()
    for number in range(MAX_OF_A_HOST):
        assert begin(leader, 2.0 * number, key(number), host="a").nonce
    late = 2.0 * MAX_OF_A_HOST
    assert begin(leader, late, NEW, host="a") == ApprovalAnswer(reason=CROWDED)
    assert begin(leader, late, key(0), host="a") == ApprovalAnswer(LEADERS)
    assert begin(leader, late, NEW, host="b") == ApprovalAnswer(LEADERS)


def test_one_address_brings_one_newcomer_a_second() -> None:
    leader = waiting_list()
    assert begin(leader, 0.0, key(1), host="a").nonce
    assert begin(leader, 0.5, key(2), host="a") == ApprovalAnswer(reason=TOO_OFTEN)
    assert begin(leader, 0.5, key(3), host="b").nonce
    assert begin(leader, 1.1, key(2), host="a").nonce


def test_all_addresses_together_bring_ten_a_minute() -> None:
    leader = waiting_list()
    taken = 0
    for number in range(600):
        if begin(leader, number / 10, key(number)).nonce:
            leader.drop(key(number))
            taken += 1
    assert 10 <= taken <= 20  # ten at once, and ten more in the course of the minute


def test_words_that_change_again_and_again_end_in_a_pause() -> None:
    leader = waiting_list()
    for number in range(MAX_TRIES):
        assert settle(leader, 10.0 * number, nonce=bytes([number]) * NONCE_BYTES).is_revealed
    late = 10.0 * MAX_TRIES
    assert begin(leader, late) == ApprovalAnswer(reason=PAUSED)
    assert leader.shown(late) == []
    assert begin(leader, late + PAUSE_S - 1) == ApprovalAnswer(reason=PAUSED)
    assert begin(leader, late + PAUSE_S + 1) == ApprovalAnswer(LEADERS)


def test_a_pause_of_one_key_is_none_of_another() -> None:
    leader = waiting_list()
    for number in range(MAX_TRIES + 1):
        settle(leader, 10.0 * number, nonce=bytes([number]) * NONCE_BYTES)
    assert settle(leader, 50.0, OTHER).is_revealed


def test_three_times_the_wrong_words_end_in_a_pause() -> None:
    leader = waiting_list()
    settle(leader, 0.0)
    (waiting,) = leader.shown(0.0)
    wrong = (*waiting.numbers[:3], (waiting.numbers[3] + 1) % 2048)
    assert leader.check(0.0, NEW, waiting.numbers).node == NEW
    for _ in range(MAX_TRIES):
        with pytest.raises(RefusedError, match="aren't the words of new"):
            leader.check(0.0, NEW, wrong)
    with pytest.raises(NotFoundError):
        leader.check(0.0, NEW, waiting.numbers)
    assert begin(leader, 1.0) == ApprovalAnswer(reason=PAUSED)


STEPS = st.tuples(
    st.sampled_from(["begin", "show", "wrong", "check", "drop"]),
    st.integers(0, 30),
    st.integers(0, 3),
    st.floats(0.0, 30.0),
)


@given(st.lists(STEPS, max_size=60))
def test_whatever_strangers_do_the_bounds_hold(
    steps: list[tuple[str, int, int, float]],
) -> None:
    leader, now, began = waiting_list(), 0.0, list[float]()
    for act, who, which, wait_s in steps:
        now += wait_s
        node, nonce = key(who), bytes([which]) * NONCE_BYTES
        if act == "begin":
            before = leader._entries.get(node)
            begin(leader, now, node, nonce, host=f"host {who % 5}")
            if leader._entries.get(node) not in (before, None):
                began.append(now)
        elif act == "show":
            show(leader, now, node, nonce)
        elif act == "wrong":
            leader.ask(now, applicant(node), ApprovalQuestion(commit(node, nonce), b""), nonce)
        elif act == "drop":
            leader.drop(node)
        else:
            with pytest.raises((NotFoundError, RefusedError)):
                leader.check(now, node, (-1, -1, -1, -1))
        assert len(leader._entries) <= MAX_WAITING
        shown = leader.shown(now)
        assert all(now - leader._entries[seen.node].seen_at < WAIT_S for seen in shown)
        assert not any(leader._is_paused(node) for node in leader._entries)
    for at in began:
        assert sum(at <= other < at + 60.0 for other in began) <= 20


def test_who_waits_is_told_by_telemetry_and_read_again() -> None:
    waiting = [PendingJoin(key(n), "n" * MAX_NAME_BYTES, (0, 1, 2, 2047)) for n in range(8)]
    raw = msgpack.packb({"waiting": to_plain(waiting)})
    assert len(raw) < 1024
    assert from_telemetry(msgpack.unpackb(raw)) == waiting


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text() | st.binary() | st.just("a" * 32),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(ANYTHING)
def test_no_telemetry_breaks_the_reader(told: object) -> None:
    for seen in from_telemetry({"waiting": told}):
        assert len(seen.numbers) == 4


@pytest.mark.parametrize(
    "row",
    [
        ["a" * 31, "new", [1, 2, 3, 4]],
        ["; rm -rf ~" + "a" * 22, "new", [1, 2, 3, 4]],
        ["a" * 32, "new", [1, 2, 3, 2048]],
        ["a" * 32, "new", [1, 2, 3]],
        ["a" * 32, "new", [1, 2, 3, "4"]],
        ["a" * 32, 5, [1, 2, 3, 4]],
    ],
)
def test_a_row_that_can_not_be_meant_is_left_out(row: object) -> None:
    good = ["a" * 32, "new", [1, 2, 3, 4]]
    assert len(from_telemetry({"waiting": [row, good]})) == 1


def test_a_strangers_name_is_short_and_on_one_line() -> None:
    assert clean_name("  lap\x1b[2J\ntop ", NEW) == "lap?[2J?top"
    assert clean_name("\n", NEW) == NEW[:8]
    assert clean_name("n" * 1000, NEW) == "n" * MAX_NAME_BYTES
    assert len(clean_name("\N{GRINNING FACE}" * 1000, NEW).encode()) == MAX_NAME_BYTES
