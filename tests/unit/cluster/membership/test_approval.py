"""Comparison words agree where two nodes speak with each other, and nowhere else."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.membership.approval import (
    LISTED_WORDS,
    MAX_EXCHANGES,
    NONCE_BYTES,
    STALE_S,
    STICK_S,
    Application,
    ApprovalAnswer,
    approve_command,
    commit,
    compare,
    is_committed,
    read_words,
    spell,
)
from jupiterd.cluster.membership.pending_joins import Applicant, PendingJoins
from jupiterd.errors import UsageError
from jupiterd.ids import ClusterId, NodeId
from tests.support.cluster.building import CLUSTER, NODES

LEADER, NEW, THIEF = NODES
OTHER_LEADER = NodeId("f" * 32)
NONCES = st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES)
LIST = [f"word{number}" for number in range(LISTED_WORDS)]


def applicant(node: NodeId = NEW) -> Applicant:
    return Applicant(node, f"name-{node[0]}", b"certificate", "10.0.0.1")


def ask(
    newcomer: Application, leader: PendingJoins, rng: random.Random, now: float, node: NodeId = NEW
) -> bool:
    """Ask a leader once; say whether the newcomer wants to go on."""
    question = newcomer.question(now, LEADER, CLUSTER, rng.randbytes(NONCE_BYTES))
    assert question is not None
    answer = leader.ask(now, applicant(node), question, rng.randbytes(NONCE_BYTES))
    return newcomer.take(now, LEADER, answer)


def exchanged(seed: int) -> tuple[Application, PendingJoins]:
    rng = random.Random(seed)
    newcomer, leader = Application(NEW), PendingJoins(CLUSTER, LEADER, 0.0)
    assert ask(newcomer, leader, rng, 0.0)
    assert newcomer.numbers == ()
    assert not ask(newcomer, leader, rng, 0.0)
    return newcomer, leader


@given(st.integers())
def test_both_sides_come_by_the_same_words(seed: int) -> None:
    newcomer, leader = exchanged(seed)
    (waiting,) = leader.shown(0.0)
    assert waiting.node == NEW
    assert waiting.numbers == newcomer.numbers
    assert len(newcomer.numbers) == 4
    assert all(0 <= number < LISTED_WORDS for number in newcomer.numbers)


@given(st.integers())
def test_who_stands_between_two_nodes_makes_their_words_differ(seed: int) -> None:
    """The thief runs the whole exchange with both sides, each time with its own key."""
    rng = random.Random(seed)
    newcomer, toward_leader = Application(NEW), Application(THIEF)
    as_leader, leader = (PendingJoins(CLUSTER, node, 0.0) for node in (THIEF, LEADER))
    for _ in range(2):
        question = newcomer.question(0.0, THIEF, CLUSTER, rng.randbytes(NONCE_BYTES))
        assert question is not None
        answer = as_leader.ask(0.0, applicant(), question, rng.randbytes(NONCE_BYTES))
        newcomer.take(0.0, THIEF, answer)
        ask(toward_leader, leader, rng, 0.0, THIEF)
    (waiting,) = leader.shown(0.0)
    assert waiting.node == THIEF
    assert newcomer.numbers
    assert waiting.numbers != newcomer.numbers


@given(NONCES, NONCES)
def test_the_words_hang_on_the_cluster_both_nodes_and_both_nonces(nonce: bytes, other: bytes):
    words = compare(CLUSTER, NEW, LEADER, nonce, other)
    assert words == compare(CLUSTER, NEW, LEADER, nonce, other)
    changed = [
        compare(ClusterId("e" * 32), NEW, LEADER, nonce, other),
        compare(CLUSTER, THIEF, LEADER, nonce, other),
        compare(CLUSTER, NEW, THIEF, nonce, other),
        compare(CLUSTER, LEADER, NEW, nonce, other),
        compare(CLUSTER, NEW, LEADER, nonce[:-1] + bytes([nonce[-1] ^ 1]), other),
        compare(CLUSTER, NEW, LEADER, nonce, other[:-1] + bytes([other[-1] ^ 1])),
    ]
    assert words not in changed


def test_the_words_are_as_good_as_drawn_at_random() -> None:
    """44 bits, each of them 0 or 1 about as often, over 4,000 exchanges."""
    rng = random.Random(1)
    drawn = [
        compare(CLUSTER, NEW, LEADER, rng.randbytes(NONCE_BYTES), rng.randbytes(NONCE_BYTES))
        for _ in range(4000)
    ]
    for word in range(4):
        for bit in range(11):
            ones = sum(numbers[word] >> bit & 1 for numbers in drawn)
            assert 1800 < ones < 2200, (word, bit)


@given(NONCES, NONCES)
def test_a_commitment_binds_one_node_to_one_nonce(nonce: bytes, other: bytes) -> None:
    bound = commit(NEW, nonce)
    assert is_committed(bound, NEW, nonce)
    assert not is_committed(bound, THIEF, nonce)
    assert not is_committed(bound, NEW, nonce[:-1])
    assert is_committed(bound, NEW, other) == (nonce == other)


def test_a_leader_that_names_another_nonce_is_never_shown_the_same_one_of_ours() -> None:
    rng = random.Random(2)
    newcomer = Application(NEW)
    first = newcomer.question(0.0, LEADER, CLUSTER, rng.randbytes(NONCE_BYTES))
    assert newcomer.take(0.0, LEADER, ApprovalAnswer(b"1" * NONCE_BYTES))
    shown = newcomer.question(0.0, LEADER, CLUSTER, rng.randbytes(NONCE_BYTES))
    assert not newcomer.take(0.0, LEADER, ApprovalAnswer(b"2" * NONCE_BYTES))
    assert newcomer.numbers == ()
    again = newcomer.question(1.0, LEADER, CLUSTER, rng.randbytes(NONCE_BYTES))
    assert first is not None
    assert shown is not None
    assert again is not None
    assert shown.nonce
    assert (first.commitment, again.nonce) == (shown.commitment, b"")
    assert again.commitment != first.commitment


def test_a_leader_can_not_say_that_it_knows_what_was_not_shown() -> None:
    newcomer = Application(NEW)
    newcomer.question(0.0, LEADER, CLUSTER, b"n" * NONCE_BYTES)
    assert newcomer.take(0.0, LEADER, ApprovalAnswer(b"1" * NONCE_BYTES, is_revealed=True))
    assert newcomer.numbers == ()


def test_a_nonce_that_was_lost_on_its_way_is_sent_again() -> None:
    rng = random.Random(3)
    newcomer, leader = Application(NEW), PendingJoins(CLUSTER, LEADER, 0.0)
    assert ask(newcomer, leader, rng, 0.0)
    newcomer.question(0.1, LEADER, CLUSTER, b"")  # never arrives
    assert ask(newcomer, leader, rng, 1.0)
    assert not ask(newcomer, leader, rng, 1.0)
    assert newcomer.numbers == leader.shown(1.0)[0].numbers


def test_an_answer_that_was_lost_costs_no_try() -> None:
    rng = random.Random(4)
    newcomer, leader = Application(NEW), PendingJoins(CLUSTER, LEADER, 0.0)
    assert ask(newcomer, leader, rng, 0.0)
    question = newcomer.question(0.1, LEADER, CLUSTER, b"")
    assert question is not None
    leader.ask(0.1, applicant(), question, b"")  # arrives, and its answer doesn't
    assert not ask(newcomer, leader, rng, 1.0)
    assert newcomer.numbers == leader.shown(1.0)[0].numbers
    assert leader._tries == {}


def test_another_leader_is_asked_once_the_first_one_is_silent() -> None:
    newcomer, _ = exchanged(5)
    nonce = b"n" * NONCE_BYTES
    assert newcomer.question(STICK_S - 1, OTHER_LEADER, CLUSTER, nonce) is None
    assert newcomer.question(STICK_S + 1, OTHER_LEADER, CLUSTER, nonce) is not None
    assert newcomer.numbers  # the first one's, until the second has words too


def test_a_leader_that_stepped_down_is_forgotten_at_once() -> None:
    newcomer, _ = exchanged(6)
    newcomer.drop(LEADER)
    assert newcomer.numbers == ()
    assert newcomer.question(0.1, OTHER_LEADER, CLUSTER, b"n" * NONCE_BYTES) is not None


def test_after_a_long_silence_the_newcomer_begins_anew() -> None:
    newcomer, _ = exchanged(7)
    late = newcomer.question(STALE_S + 1, LEADER, CLUSTER, b"m" * NONCE_BYTES)
    assert late is not None
    assert late.commitment == commit(NEW, b"m" * NONCE_BYTES)


def test_many_that_say_they_lead_fill_no_memory() -> None:
    newcomer = Application(NEW)
    for number in range(50):
        node = NodeId(f"{number:032x}")
        newcomer.question(10.0 * number, node, CLUSTER, b"n" * NONCE_BYTES)
        newcomer.take(10.0 * number, node, ApprovalAnswer(b"1" * NONCE_BYTES))
    assert len(newcomer._exchanges) == MAX_EXCHANGES


def test_words_are_read_as_people_type_them() -> None:
    numbers = (0, 7, 2047, 7)
    assert read_words(spell(numbers, LIST), LIST) == numbers
    assert read_words("  Word0, word7-WORD2047   word7", LIST) == numbers


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("word1 word2 word3", "there are 4 words"),
        ("word1 word2 word3 word4 word5", "there are 4 words"),
        ("word1 word2 word3 wrod4", "wrod4 isn't one of the words"),
        ("", "there are 4 words"),
    ],
)
def test_what_can_not_be_the_words_is_a_mistyping(text: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        read_words(text, LIST)


def test_the_command_names_a_node_in_a_way_that_no_shell_misreads() -> None:
    assert approve_command("new-laptop.local", NEW) == "jupiterctl node approve new-laptop.local"
    for name in ("; rm -rf ~", "-h", "$(id)", "a b", "", "ünix", "a\nb"):
        assert approve_command(name, NEW) == f"jupiterctl node approve {NEW[:8]}"
