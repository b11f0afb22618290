import math
import random
from dataclasses import replace

import pytest

from jupiterd.cluster.membership.election import (
    BeatSeen,
    BecomeLeader,
    Effect,
    Election,
    ElectionRole,
    ElectionTicked,
    Follow,
    GangChanged,
    HandedOver,
    PersistTerm,
    PresenceChanged,
    PreVoteAnswered,
    Reinstated,
    RequestPreVote,
    Resigned,
    StabilityChanged,
    StepDown,
    StorageFailed,
    StorageRecovered,
    TermSeen,
)
from jupiterd.cluster.values.timing import LAN
from jupiterd.ids import NodeId

ME, BOB, EVE, DAN = (NodeId(letter * 32) for letter in "mbzd")
PEERS = frozenset((BOB, EVE))


def election(term: int = 0, present: frozenset[NodeId] = PEERS) -> Election:
    made = Election(ME, term, 0.0, random.Random(5))
    if present:
        made.step(0.0, PresenceChanged(present))
    return made


def beat(
    node: NodeId,
    leader: NodeId | None = None,
    term: int = 1,
    stability: int = 0,
    members_alive: int = 1,
    runs_gang: bool = False,
) -> BeatSeen:
    return BeatSeen(node, term, leader, stability, members_alive, runs_gang)


def leading(term: int = 0, present: frozenset[NodeId] = PEERS) -> Election:
    """An election that this node has won."""
    made = election(term, present)
    made.step(3.0, ElectionTicked())
    for node in present:
        made.step(3.1, PreVoteAnswered(node, granted=True, term=term))
    assert made.role is ElectionRole.LEADER
    return made


def following(leader: NodeId = BOB, term: int = 1) -> Election:
    made = election()
    made.step(0.0, beat(leader, leader, term))
    return made


def kinds(effects: list[Effect]) -> list[type]:
    return [type(effect) for effect in effects]


def test_a_node_alone_leads_itself_after_a_second() -> None:
    alone = election(term=4, present=frozenset())
    assert alone.step(0.9, ElectionTicked()) == []
    assert alone.step(1.0, ElectionTicked()) == [PersistTerm(5), BecomeLeader(5, "alone")]
    assert (alone.leader, alone.term, alone.role) == (ME, 5, ElectionRole.LEADER)
    assert alone.step(9.0, ElectionTicked()) == []


def test_nobody_asks_before_the_shortest_wait_and_everybody_after_the_longest() -> None:
    for seed in range(50):
        made = Election(ME, 0, 0.0, random.Random(seed))
        made.step(0.0, PresenceChanged(PEERS))
        assert made.step(1.49, ElectionTicked()) == []
        assert made.step(3.0, ElectionTicked()) == [RequestPreVote(PEERS, 1)]


def test_who_is_less_steady_waits_longer() -> None:
    made = election()
    for node in PEERS:
        made.step(0.0, beat(node, stability=3))
    made.step(0.0, beat(BOB, BOB, stability=3))
    assert made.step(2.09, ElectionTicked()) == []


def test_all_must_grant() -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    assert made.step(3.1, PreVoteAnswered(BOB, granted=True, term=7)) == [PersistTerm(7)]
    effects = made.step(3.2, PreVoteAnswered(EVE, granted=True, term=2))
    assert effects == [PersistTerm(8), BecomeLeader(8, "all 2 nodes asked agree")]


def test_one_refusal_ends_the_round_and_a_new_wait_begins() -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    assert made.step(3.1, PreVoteAnswered(BOB, granted=False, term=0)) == []
    assert made.role is ElectionRole.FOLLOWER
    assert made.step(3.2, PreVoteAnswered(EVE, granted=True, term=0)) == []
    assert made.step(4.5, ElectionTicked()) == []
    assert made.step(6.1, ElectionTicked()) == [RequestPreVote(PEERS, 1)]


def test_a_silent_node_is_asked_twice_and_then_passed_over() -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    made.step(3.1, PreVoteAnswered(EVE, granted=True, term=0))
    assert made.step(3.9, ElectionTicked()) == []
    assert made.step(4.0, ElectionTicked()) == [RequestPreVote(frozenset((BOB,)), 1)]
    effects = made.step(5.0, ElectionTicked())
    assert effects == [PersistTerm(1), BecomeLeader(1, "1 of 2 didn't answer")]


def test_what_comes_and_goes_does_not_start_an_election_anew() -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    for instant in (3.2, 3.4, 3.6):
        assert made.step(instant, PresenceChanged(frozenset((BOB,)))) == []
        assert made.step(instant, PresenceChanged(PEERS)) == []
    assert kinds(made.step(3.7, PreVoteAnswered(BOB, granted=True, term=0))) == [
        PersistTerm,
        BecomeLeader,
    ]


def test_a_round_ends_well_when_the_last_awaited_node_goes_away() -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    assert kinds(made.step(3.1, PresenceChanged(frozenset()))) == [PersistTerm, BecomeLeader]


def test_a_flapping_link_does_not_put_off_the_wait() -> None:
    made = election()
    for tenth in range(29):
        peers = PEERS if tenth % 2 else frozenset((BOB,))
        made.step(tenth / 10, PresenceChanged(peers))
    assert kinds(made.step(3.0, ElectionTicked())) == [RequestPreVote]


def test_a_follower_that_hears_its_leader_never_asks_and_refuses_everybody() -> None:
    made = following()
    for half_seconds in range(1, 40):
        now = half_seconds / 2
        made.step(now, beat(BOB, BOB))
        assert made.step(now, ElectionTicked()) == []
        granted, reason = made.answer_pre_vote(now, EVE, 9, 9)
        assert not granted
        assert "hears the leader" in reason


def test_a_follower_whose_leader_fell_silent_grants_and_then_waits() -> None:
    made = following()
    granted, _ = made.answer_pre_vote(2.9, EVE, 2, 0)
    assert granted
    assert made.step(3.1, ElectionTicked()) == []
    assert made.step(4.5, ElectionTicked()) == [RequestPreVote(PEERS, 2)]


def test_a_leader_refuses() -> None:
    granted, reason = leading().answer_pre_vote(4.0, BOB, 9, 9)
    assert not granted
    assert "leads in term 1" in reason


@pytest.mark.parametrize(
    ("asker", "stability", "granted"), [(BOB, 0, False), (EVE, 0, True), (BOB, 1, True)]
)
def test_of_two_that_ask_at_once_the_steadier_goes_on(
    asker: NodeId, stability: int, granted: bool
) -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    assert made.answer_pre_vote(3.1, asker, 1, stability)[0] is granted
    assert made.role is (ElectionRole.FOLLOWER if granted else ElectionRole.ASKING)


def test_a_leaders_heartbeat_ends_an_election() -> None:
    made = election()
    made.step(3.0, ElectionTicked())
    assert made.step(3.1, beat(BOB, BOB, 6)) == [PersistTerm(6), Follow(BOB, 6, "it leads")]
    assert made.leader == BOB
    assert made.step(3.2, beat(BOB, BOB, 6)) == []


def test_the_incumbent_stays_where_two_leaders_are_heard() -> None:
    made = following(BOB, term=1)
    assert made.step(0.5, beat(EVE, EVE, 9, members_alive=9)) == []
    assert (made.leader, made.term) == (BOB, 1)


def test_a_second_leader_is_followed_when_the_first_fell_silent() -> None:
    made = following(BOB)
    assert made.step(1.6, beat(EVE, EVE, 9)) == [PersistTerm(9), Follow(EVE, 9, "it leads")]


@pytest.mark.parametrize(
    "rival",
    [
        beat(BOB, BOB, runs_gang=True),
        beat(BOB, BOB, members_alive=2),
        beat(BOB, BOB, stability=1),
        beat(EVE, EVE),
    ],
)
def test_of_two_leaders_the_one_that_counts_for_more_stays(rival: BeatSeen) -> None:
    made = leading()
    effects = made.step(4.0, rival)
    assert kinds(effects) == [StepDown, PersistTerm, Follow]
    assert made.leader == rival.node
    assert made.term == 2  # so that the other one goes above both


def test_the_leader_that_stays_takes_a_term_above_both() -> None:
    made = leading(term=3)
    effects = made.step(4.0, beat(BOB, BOB, term=8))
    assert kinds(effects) == [PersistTerm, BecomeLeader]
    assert (made.term, made.leader) == (9, ME)
    assert made.step(4.5, beat(BOB, BOB, term=8)) == []


def test_equal_terms_of_two_leaders_are_told_apart_too() -> None:
    made = leading(term=3)
    made.step(4.0, beat(BOB, BOB, term=4))
    assert made.term == 5


def test_a_gang_outweighs_members() -> None:
    made = leading()
    made.step(3.5, GangChanged(runs_gang=True))
    assert made.step(4.0, beat(BOB, BOB, term=0, members_alive=9)) == []


def test_stability_decides_before_the_id() -> None:
    made = leading()
    made.step(3.5, StabilityChanged(2))
    assert made.step(4.0, beat(EVE, EVE, stability=1, term=0)) == []


def test_a_leaders_group_is_those_who_say_that_they_follow_it() -> None:
    made = leading()
    assert made.members_alive(4.0) == 1
    made.step(4.0, beat(BOB, ME))
    assert made.members_alive(4.0) == 2
    made.step(4.1, PresenceChanged(frozenset((EVE,))))
    assert made.members_alive(4.1) == 1


def test_a_follower_that_was_silent_may_have_elected_another_and_counts_no_more() -> None:
    made = leading()
    made.step(4.0, beat(BOB, ME))
    assert made.members_alive(4.0 + LAN.election_min_s) == 1
    effects = made.step(9.0, beat(EVE, EVE, members_alive=2))
    assert kinds(effects)[0] is StepDown


def test_it_says_when_it_wants_to_be_woken() -> None:
    made = Election(ME, 0, 0.0, random.Random(1))
    assert made.wake_at == LAN.alone_settle_s
    made.step(0.0, PresenceChanged(frozenset((BOB,))))
    assert LAN.election_min_s <= made.wake_at <= LAN.election_max_s
    assert made.step(made.wake_at - 0.001, ElectionTicked()) == []
    asked_at = made.wake_at
    assert kinds(made.step(asked_at, ElectionTicked())) == [RequestPreVote]
    assert made.wake_at == asked_at + LAN.answer_s
    made.step(made.wake_at, ElectionTicked())
    assert kinds(made.step(made.wake_at, ElectionTicked())) == [PersistTerm, BecomeLeader]
    assert made.wake_at == math.inf


def test_who_resigned_stands_again_only_once_it_is_reinstated() -> None:
    made = election()
    made.step(0.0, Resigned())
    assert made.wake_at == math.inf
    made.step(50.0, Reinstated())
    assert 50.0 + LAN.election_min_s <= made.wake_at <= 50.0 + LAN.election_max_s


def test_being_reinstated_changes_nothing_for_who_never_resigned() -> None:
    made = election()
    before = made.wake_at
    made.step(1.0, Reinstated())
    assert made.wake_at == before


def test_the_successor_asks_at_once_and_the_others_wait_for_it() -> None:
    for successor, asks in ((ME, [RequestPreVote]), (BOB, [])):
        made = Election(ME, 1, 0.0, random.Random(1))
        made.step(0.0, PresenceChanged(frozenset((BOB, EVE))))
        made.step(0.1, beat(EVE, EVE, term=1))
        made.step(1.0, PresenceChanged(frozenset((BOB,))))
        assert kinds(made.step(1.0, HandedOver(successor))) == asks
        assert made.wake_at == 1.0 + LAN.answer_s


@pytest.mark.parametrize("knows_before", [True, False])
def test_a_successor_that_has_gone_is_not_waited_for(knows_before: bool) -> None:
    made = Election(ME, 1, 0.0, random.Random(1))
    made.step(0.0, PresenceChanged(frozenset((BOB, DAN, EVE))))
    made.step(0.1, beat(EVE, EVE, term=1))
    gone, left = PresenceChanged(frozenset((DAN,))), PresenceChanged(frozenset((BOB, DAN)))
    made.step(1.0, gone if knows_before else left)
    made.step(1.0, HandedOver(BOB))
    made.step(1.0, gone)
    assert made.wake_at <= 1.0 + LAN.hurry_s


def test_a_successor_that_leads_is_followed_whoever_goes_then() -> None:
    made = Election(ME, 1, 0.0, random.Random(1))
    made.step(0.0, PresenceChanged(frozenset((BOB, EVE))))
    made.step(0.1, beat(EVE, EVE, term=1))
    made.step(1.0, PresenceChanged(frozenset((BOB, DAN))))
    made.step(1.0, HandedOver(DAN))
    made.step(1.1, beat(BOB, BOB, term=2))
    made.step(1.2, PresenceChanged(frozenset((BOB,))))
    assert made.leader == BOB
    assert made.wake_at >= 1.1 + LAN.election_min_s


def test_who_knows_that_its_leader_is_dead_asks_again_soon_after_a_refusal() -> None:
    made = Election(ME, 1, 0.0, random.Random(1))
    made.step(0.0, PresenceChanged(frozenset((BOB, EVE))))
    made.step(0.1, beat(EVE, EVE, term=1))
    made.step(1.0, PresenceChanged(frozenset((BOB,))))
    made.step(made.wake_at, ElectionTicked())
    made.step(2.0, PreVoteAnswered(BOB, granted=False, term=1))
    assert 2.0 + LAN.beat_s <= made.wake_at <= 2.0 + LAN.beat_s + LAN.hurry_s


def test_nobody_takes_over_from_a_leader_that_is_still_here() -> None:
    made = Election(ME, 1, 0.0, random.Random(1))
    made.step(0.0, PresenceChanged(frozenset((BOB, EVE))))
    made.step(0.1, beat(EVE, EVE, term=1))
    assert made.step(0.2, HandedOver(ME)) == []


def test_a_higher_term_in_the_ledger_makes_a_leader_go_above_it() -> None:
    made = leading(term=3)
    assert made.step(4.0, TermSeen(9)) == [PersistTerm(10), BecomeLeader(10, "term 9 was seen")]
    assert made.step(4.0, TermSeen(10)) == []


def test_a_higher_term_of_its_follower_makes_a_leader_go_above_it() -> None:
    made = leading()
    assert kinds(made.step(4.0, beat(BOB, ME, term=5))) == [PersistTerm, BecomeLeader]
    assert made.term == 6


def test_a_follower_of_somebody_else_does_not_drive_terms_up() -> None:
    made = leading()
    assert made.step(4.0, beat(BOB, EVE, term=50)) == []


def test_a_follower_keeps_the_highest_term_and_never_goes_back() -> None:
    made = following(BOB, term=7)
    assert made.step(0.1, TermSeen(3)) == []
    assert made.step(0.2, beat(BOB, BOB, term=2)) == []
    assert made.step(0.3, TermSeen(8)) == [PersistTerm(8)]
    assert made.term == 8


def test_a_leader_that_resigns_steps_down_and_never_asks_again() -> None:
    made = leading()
    assert kinds(made.step(4.0, Resigned())) == [StepDown]
    assert made.leader is None
    assert made.step(60.0, ElectionTicked()) == []
    assert made.answer_pre_vote(60.0, BOB, 2, 0)[0]
    assert following().step(1.0, Resigned()) == []


@pytest.mark.parametrize("nobody", [None, NodeId("")])
def test_followers_of_a_leader_that_resigned_ask_at_once(nobody: NodeId | None) -> None:
    made = following()
    made.step(5.0, beat(BOB, BOB))
    made.step(5.2, beat(BOB, nobody))
    assert made.leader is None
    assert made.step(5.6, ElectionTicked()) == [RequestPreVote(PEERS, 2)]


def test_followers_of_a_leader_that_went_away_ask_at_once() -> None:
    made = following()
    made.step(5.0, beat(BOB, BOB))
    made.step(5.2, PresenceChanged(frozenset((EVE,))))
    assert made.leader is None
    assert made.step(5.6, ElectionTicked()) == [RequestPreVote(frozenset((EVE,)), 2)]


def test_followers_go_over_with_a_leader_that_follows_another_one() -> None:
    made = following(BOB)
    effects = made.step(1.0, beat(BOB, EVE, term=4))
    assert effects == [PersistTerm(4), Follow(EVE, 4, "bbbbbbbb follows it")]


def test_a_leader_that_is_only_told_of_is_followed_but_does_not_stop_the_wait() -> None:
    made = election(present=PEERS)
    assert made.step(0.5, beat(BOB, EVE, term=4)) == [
        PersistTerm(4),
        Follow(EVE, 4, "bbbbbbbb follows it"),
    ]
    assert kinds(made.step(3.0, ElectionTicked())) == [RequestPreVote]


def test_nobody_follows_itself_by_hearsay() -> None:
    made = election()
    assert made.step(0.5, beat(BOB, ME, term=4)) == []
    assert made.leader is None


def test_its_own_heartbeat_and_late_answers_change_nothing() -> None:
    made = election()
    assert made.step(0.5, beat(ME, ME, term=9)) == []
    assert made.step(0.5, PreVoteAnswered(BOB, granted=True, term=9)) == []
    assert made.term == 0


def test_two_leaders_that_yielded_to_each_other_do_not_wait_for_ever() -> None:
    made = leading()
    made.step(4.0, beat(BOB, BOB, members_alive=9))
    made.step(4.1, beat(BOB, ME))
    assert made.leader is None
    assert made.step(4.5, ElectionTicked()) == [RequestPreVote(PEERS, 3)]


def test_a_leader_that_is_gone_is_not_followed_because_a_peer_has_not_noticed() -> None:
    made = election(present=frozenset((BOB,)))
    made.step(0.5, beat(BOB, EVE, term=4))
    assert made.leader is None


def test_a_leader_that_cannot_write_its_term_steps_down_and_grants_to_others() -> None:
    made = leading()
    assert made.step(4.0, StorageFailed()) == [StepDown("its term can't be written to disk")]
    assert (made.role, made.leader) == (ElectionRole.FOLLOWER, None)
    assert made.answer_pre_vote(4.1, BOB, 1, 0)[0]


def test_a_node_that_cannot_write_asks_for_nothing_until_it_can() -> None:
    made = election(present=frozenset())
    made.step(0.0, StorageFailed())
    assert made.step(60.0, ElectionTicked()) == []
    made.step(60.0, StorageRecovered())
    effects = made.step(70.0, ElectionTicked())
    assert [type(effect) for effect in effects] == [PersistTerm, BecomeLeader]


def test_a_node_that_cannot_write_still_follows() -> None:
    made = election()
    made.step(0.0, StorageFailed())
    made.step(0.1, beat(BOB, BOB, 3))
    assert made.leader == BOB


def test_what_comes_late_takes_nothing_back_of_what_a_follower_said_since() -> None:
    made = leading()
    made.step(4.0, beat(BOB, ME))
    made.step(4.2, replace(beat(BOB, EVE), is_fresh=False))
    assert made.members_alive(4.3) == 2
    made.step(4.0 + LAN.election_min_s, replace(beat(BOB, ME), is_fresh=False))
    assert made.members_alive(4.1 + LAN.election_min_s) == 1, "what comes late is no proof either"
