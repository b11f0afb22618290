"""A leader that falls silent: who is asked about it, how often, and how long it is waited for."""

import random
from dataclasses import replace

from jupiterd.cluster.membership.election import (
    BecomeLeader,
    Election,
    ElectionTicked,
    PersistTerm,
    PresenceChanged,
    PreVoteAnswered,
    RequestPreVote,
)
from jupiterd.cluster.values.timing import LAN
from tests.unit.cluster.membership.test_election import (
    BOB,
    EVE,
    ME,
    PEERS,
    beat,
    election,
    following,
    kinds,
)


def test_a_leader_whom_another_does_not_hear_either_is_asked_once() -> None:
    made = following(BOB)
    assert made.step(3.0, ElectionTicked()) == [RequestPreVote(PEERS, 2)]
    made.step(3.1, PreVoteAnswered(EVE, granted=True, term=1))
    assert made.step(3.9, ElectionTicked()) == []
    assert made.step(4.0, ElectionTicked()) == [
        PersistTerm(2),
        BecomeLeader(2, "1 of 2 didn't answer"),
    ]


def test_a_leader_that_nobody_else_can_speak_for_is_asked_twice() -> None:
    made = following(BOB)
    made.step(0.1, PresenceChanged(frozenset((BOB,))))
    assert made.step(3.0, ElectionTicked()) == [RequestPreVote(frozenset((BOB,)), 2)]
    assert made.step(4.0, ElectionTicked()) == [RequestPreVote(frozenset((BOB,)), 2)]
    assert BecomeLeader(2, "1 of 1 didn't answer") in made.step(5.0, ElectionTicked())


def test_two_that_are_silent_are_asked_twice_whoever_led() -> None:
    made = following(BOB)
    made.step(3.0, ElectionTicked())
    assert made.step(4.0, ElectionTicked()) == [RequestPreVote(PEERS, 2)]


def test_a_node_that_goes_before_it_answers_has_not_spoken_for_the_leaders_silence() -> None:
    made = following(BOB)
    made.step(3.0, ElectionTicked())
    made.step(3.5, PresenceChanged(frozenset((BOB,))))
    assert made.step(4.0, ElectionTicked()) == [RequestPreVote(frozenset((BOB,)), 2)]


def test_a_leader_that_runs_a_gang_is_waited_for_less_long() -> None:
    for seed in range(50):
        made = Election(ME, 0, 0.0, random.Random(seed))
        made.step(0.0, PresenceChanged(PEERS))
        made.step(0.0, beat(BOB, BOB, runs_gang=True))
        assert made.step(LAN.election_min_s - 0.01, ElectionTicked()) == []
        assert made.step(LAN.gang_max_s, ElectionTicked()) == [RequestPreVote(PEERS, 2)]


def test_a_gang_that_has_ended_hurries_nobody() -> None:
    waits_s: list[float] = []
    for seed in range(50):
        made = Election(ME, 0, 0.0, random.Random(seed))
        made.step(0.0, PresenceChanged(PEERS))
        made.step(0.0, beat(BOB, BOB, runs_gang=True))
        made.step(0.0, beat(BOB, BOB))
        waits_s.append(made.wake_at)
    assert max(waits_s) > LAN.election_max_s - 0.2


def asking_about_a_gang() -> Election:
    made = election()
    made.step(0.0, beat(BOB, BOB, runs_gang=True))
    assert kinds(made.step(1.7, ElectionTicked())) == [RequestPreVote]
    return made


def test_an_unheard_leader_that_runs_a_gang_has_less_time_to_answer() -> None:
    made = asking_about_a_gang()
    made.step(1.8, PreVoteAnswered(EVE, granted=True, term=1))
    assert made.step(2.39, ElectionTicked()) == []
    assert kinds(made.step(2.4, ElectionTicked())) == [PersistTerm, BecomeLeader]


def test_who_asks_again_after_a_refusal_still_asks_about_the_same_leader() -> None:
    made = asking_about_a_gang()
    made.step(1.8, PreVoteAnswered(EVE, granted=False, term=1))
    asked_at = made.wake_at
    assert kinds(made.step(asked_at, ElectionTicked())) == [RequestPreVote]
    made.step(asked_at, PreVoteAnswered(EVE, granted=True, term=1))
    assert kinds(made.step(asked_at + LAN.gang_answer_s, ElectionTicked())) == [
        PersistTerm,
        BecomeLeader,
    ]


def test_a_leader_that_was_heard_again_is_not_the_silent_one() -> None:
    made = asking_about_a_gang()
    made.step(1.8, beat(BOB, BOB, runs_gang=True))
    made.step(1.9, beat(EVE, EVE, term=9))
    made.step(3.6, beat(EVE, EVE, term=9))
    made.step(3.7, beat(EVE, None, term=9))
    asked_at = made.wake_at
    made.step(asked_at, ElectionTicked())
    made.step(asked_at, PreVoteAnswered(EVE, granted=True, term=9))
    assert made.step(asked_at + LAN.gang_answer_s, ElectionTicked()) == []
    assert kinds(made.step(asked_at + LAN.answer_s, ElectionTicked())) == [RequestPreVote]


def test_who_did_not_answer_the_winner_is_passed_over_until_it_is_heard() -> None:
    made = asking_about_a_gang()
    made.step(1.8, PreVoteAnswered(EVE, granted=True, term=1))
    assert made.passed_over == frozenset()
    made.step(2.4, ElectionTicked())
    assert made.passed_over == {BOB}
    made.step(2.5, beat(EVE, ME, 2))
    made.step(2.5, replace(beat(BOB, BOB, 1), is_fresh=False))
    assert made.passed_over == {BOB}
    made.step(2.6, beat(BOB, BOB, 1))
    assert made.passed_over == frozenset()
