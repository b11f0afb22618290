import random
from dataclasses import replace

from jupiterd.cluster.membership.election import ElectionRole
from jupiterd.cluster.membership.failure_detector import Liveness
from jupiterd.cluster.membership.presence import (
    AddressRefused,
    AnswerPreVote,
    Beat,
    BecomeLeader,
    Changed,
    DeadlinePassed,
    GangChanged,
    PersistTerm,
    Presence,
    PreVoteAnswered,
    PreVoteRequested,
    RequestPreVote,
    Resigned,
    RosterChanged,
    SaidGoodbye,
    StabilityChanged,
    StepDown,
    StorageFailed,
    StorageRecovered,
    TermSeen,
    Ticked,
)
from jupiterd.ids import NodeId

ME, BOB, EVE = (NodeId(letter * 32) for letter in "mbz")


def presence(*others: NodeId, term: int = 0) -> Presence:
    made = Presence(ME, term, 0.0, random.Random(5))
    made.step(0.0, RosterChanged(frozenset(others)))
    return made


def tick_until(made: Presence, end_s: float, start_s: float = 0.0) -> list[object]:
    """Tick in time; return every effect."""
    effects: list[object] = []
    for beat in range(1, round((end_s - start_s) / 0.5) + 1):
        effects += made.step(start_s + beat * 0.5, Ticked())
    return effects


def leading_alone() -> Presence:
    made = presence()
    tick_until(made, 2.0)
    assert made.election.role is ElectionRole.LEADER
    return made


def leading(until_s: float = 4.0) -> Presence:
    """A leader whom Bob follows and beats to."""
    made = presence(BOB)
    made.step(0.1, Beat(BOB, 0, None))
    tick_until(made, 3.0)
    made.step(3.1, PreVoteAnswered(BOB, granted=True, term=0))
    assert made.election.role is ElectionRole.LEADER
    made.step(until_s, Ticked())
    made.step(until_s, Beat(BOB, 1, ME, sent_s=until_s - 0.1, echo_s=until_s - 0.2))
    return made


def test_a_lone_node_persists_its_term_and_then_leads() -> None:
    effects = tick_until(presence(term=4), 2.0)
    assert effects == [PersistTerm(5), BecomeLeader(5, "alone")]


def test_members_that_are_not_gone_are_asked_for_their_pre_vote() -> None:
    made = presence(BOB, EVE)
    made.step(0.1, SaidGoodbye(EVE))
    assert RequestPreVote(frozenset({BOB}), 1) in tick_until(made, 3.5)


def test_a_beat_counts_as_heard_and_tells_who_leads() -> None:
    made = presence(BOB, EVE)
    effects = made.step(0.2, Beat(BOB, 3, BOB, ages_s={EVE: 0.1}))
    assert [effect.node for effect in effects if isinstance(effect, Changed)] == [BOB, EVE]
    assert PersistTerm(3) in effects
    assert made.election.leader == BOB
    assert made.membership.present() == {ME, BOB, EVE}


def test_a_leader_that_is_refused_is_replaced_in_a_hurry() -> None:
    made = presence(BOB)
    made.step(0.1, Beat(BOB, 1, BOB))
    (changed,) = made.step(0.2, AddressRefused(BOB))
    assert isinstance(changed, Changed)
    assert changed.after is Liveness.GONE
    effects = made.step(1.3, Ticked())
    assert effects[-1] == BecomeLeader(2, "alone")


def test_a_deadline_is_kept_between_two_ticks() -> None:
    made = presence(BOB)
    made.step(0.1, Beat(BOB, 1, BOB))
    made.step(0.2, AddressRefused(BOB))
    assert made.wake_at < 0.2 + 0.3
    assert made.step(made.wake_at, DeadlinePassed())[-1] == BecomeLeader(2, "alone")


def test_a_pre_vote_is_answered_with_the_highest_term_known() -> None:
    made = presence(BOB)
    made.step(0.1, TermSeen(7))
    (answer,) = made.step(0.2, PreVoteRequested(BOB, 1, 0))
    assert isinstance(answer, AnswerPreVote)
    assert (answer.node, answer.granted, answer.term) == (BOB, True, 7)


def test_a_leader_refuses_pre_votes_and_says_why() -> None:
    (answer,) = leading_alone().step(2.1, PreVoteRequested(BOB, 9, 3))
    assert answer == AnswerPreVote(BOB, granted=False, term=1, reason="mmmmmmmm leads in term 1")


def test_a_beat_says_what_this_node_is_and_whom_it_hears_itself() -> None:
    made = leading()
    made.step(4.0, StabilityChanged(2))
    made.step(4.0, GangChanged(runs_gang=True))
    assert made.beat(4.5, BOB) == Beat(
        ME, 1, ME, 2, 2, runs_gang=True, ages_s={BOB: 0.5}, sent_s=4.5, echo_s=3.9
    )


def test_a_leader_that_slept_steps_down_before_it_takes_in_what_has_piled_up() -> None:
    piled_up = (
        Beat(BOB, 1, ME),
        PreVoteRequested(BOB, 2, 0),
        PreVoteAnswered(BOB, granted=True, term=1),
        TermSeen(9),
        Ticked(12.0),
        AddressRefused(BOB),
    )
    for event in piled_up:
        made = leading(4.0)
        effects = made.step(20.0, event)
        assert effects[0] == StepDown("it was asleep for 15.5 s")
        assert not any(isinstance(effect, BecomeLeader) for effect in effects)
        assert made.election.role is ElectionRole.FOLLOWER
        assert made.election.leader is None


def test_every_entry_point_of_the_shell_can_notice_the_sleep() -> None:
    made = leading(4.0)
    assert made.wake(7.4) == []
    assert made.wake(7.6) == [StepDown("it was asleep for 3.1 s")]
    assert made.wake(7.7) == []


def test_a_loop_that_handles_messages_but_no_ticks_has_not_woken_twice() -> None:
    made = leading(4.0)
    assert StepDown("it was asleep for 15.5 s") in made.step(20.0, Beat(BOB, 1, ME))
    assert made.step(20.1, Ticked(15.6)) == []
    assert made.step(20.2, Beat(BOB, 1, None)) == []


def test_one_that_woke_listens_before_it_asks_or_leads() -> None:
    leader = leading(4.0)
    assert leader.step(30.0, Ticked(25.5)) == [StepDown("it was asleep for 25.5 s")]
    assert tick_until(leader, 31.0, 30.0) == []
    follower = presence(BOB)
    follower.step(0.1, Beat(BOB, 1, BOB))
    follower.step(0.5, Ticked())
    assert follower.step(30.0, Ticked(29.5)) == []
    assert tick_until(follower, 31.0, 30.0) == []


def test_one_that_was_starved_before_it_led_listens_anew() -> None:
    made = presence()
    made.step(0.5, Ticked())
    assert made.step(30.0, Ticked(29.0)) == []
    assert tick_until(made, 30.5, 30.0) == []
    assert tick_until(made, 31.0, 30.5) == [PersistTerm(1), BecomeLeader(1, "alone")]


def test_a_lone_node_that_is_starved_of_processor_time_stays_leader() -> None:
    seed = 14
    print("seed", seed)
    rng, made, now_s = random.Random(seed), presence(), 0.0
    effects: list[object] = []
    for _ in range(1000):
        late_s = rng.choice((0.0, 1.0, 4.0, 30.0)) * rng.random()
        now_s += 0.5 + late_s
        effects += made.step(now_s, Ticked(late_s))
    assert effects == [PersistTerm(1), BecomeLeader(1, "alone")]


def test_a_leader_whose_last_peer_is_gone_stays_leader_when_it_wakes() -> None:
    made = leading(4.0)
    made.step(4.1, SaidGoodbye(BOB))
    assert made.step(30.0, Ticked(25.5)) == []
    assert made.election.role is ElectionRole.LEADER


def test_a_lone_leader_that_woke_gives_way_to_whoever_leads_more_by_now() -> None:
    made = leading_alone()
    made.step(2.5, RosterChanged(frozenset({BOB})))
    made.step(2.6, SaidGoodbye(BOB))
    assert made.step(30.0, Ticked(27.5)) == []
    effects = made.step(30.2, Beat(BOB, 5, BOB, members_alive=2, sent_s=30.1, echo_s=30.1))
    assert StepDown("bbbbbbbb leads and takes precedence") in effects


def test_before_its_first_tick_a_node_was_not_asleep() -> None:
    made = presence(BOB)
    made.step(9.0, Beat(BOB, 1, BOB))
    assert made.wake(9.0) == []
    assert made.membership.ages(9.0) == {BOB: 0.0}


def test_a_beat_that_has_piled_up_in_a_sleep_does_not_raise_the_dead() -> None:
    for first in (Ticked(25.5), None):
        made = presence(BOB, EVE)
        made.step(0.1, Beat(BOB, 1, BOB))
        tick_until(made, 4.0)
        if first is not None:
            made.step(30.0, first)
        made.step(30.0, Beat(BOB, 1, BOB, ages_s={EVE: 0.1}))
        assert made.membership.ages(30.0)[BOB] > 25.0
        assert made.membership.last_heard_s(EVE, 30.0) is None


def test_a_beat_that_comes_after_a_tick_in_time_is_fresh_again() -> None:
    made = presence(BOB)
    tick_until(made, 4.0)
    made.step(30.0, Ticked(25.5))
    made.step(30.5, Ticked())
    assert [effect.node for effect in made.step(30.6, Beat(BOB, 1, BOB))[:1]] == [BOB]
    assert made.membership.ages(30.6) == {BOB: 0.0}


def test_a_late_tick_accuses_nobody_even_if_the_shell_tells_of_no_lag() -> None:
    made = leading(4.0)
    made.step(6.9, Ticked(0.0))
    assert made.step(9.2, Ticked(0.0)) == []
    assert made.membership.liveness(BOB) is Liveness.ALIVE


def test_a_node_that_stops_or_cannot_write_leads_no_more() -> None:
    for event in (Resigned(), StorageFailed()):
        made = leading(4.0)
        (step_down,) = made.step(4.1, event)
        assert isinstance(step_down, StepDown)
        effects = tick_until(made, 14.0, 4.0)
        assert all(isinstance(effect, Changed) for effect in effects)


def test_a_node_leads_again_once_it_can_write() -> None:
    made = leading_alone()
    made.step(2.1, StorageFailed())
    assert tick_until(made, 8.0, 2.0) == []
    made.step(8.1, StorageRecovered())
    assert BecomeLeader(2, "alone") in tick_until(made, 12.0, 8.0)


def test_what_was_sent_into_a_pulled_cable_tells_nothing_of_who_leads_now() -> None:
    """Eve led all three and was cut off; Bob follows ME by now; her beats lay in her cable."""
    made = presence(BOB, EVE)
    made.step(0.1, Beat(BOB, 0, None))
    tick_until(made, 3.0)
    made.step(3.1, PreVoteAnswered(BOB, granted=True, term=0))
    tick_until(made, 6.0, 3.0)
    made.step(6.0, Beat(BOB, 1, ME, sent_s=6.0, echo_s=5.9))
    old = Beat(EVE, 0, EVE, members_alive=3, runs_gang=True, sent_s=3.5, echo_s=2.9)
    assert not any(isinstance(effect, StepDown) for effect in made.step(6.1, old))
    assert made.election.leader == ME
    assert EVE in made.membership.alive()
    now = replace(old, members_alive=1, runs_gang=False, echo_s=6.0)
    assert made.step(6.2, now) == []
    assert made.election.leader == ME


def test_followers_of_before_a_cut_are_not_counted_after_it() -> None:
    made = leading(4.0)
    tick_until(made, 8.0, 4.0)
    made.step(8.0, Beat(BOB, 1, ME, sent_s=4.6, echo_s=4.5))
    assert made.beat(8.1, BOB).members_alive == 1
    made.step(8.2, Beat(BOB, 1, ME, sent_s=8.0, echo_s=8.1))
    assert made.beat(8.2, BOB).members_alive == 2


def test_of_two_leaders_the_one_that_is_answered_first_decides() -> None:
    """A first call carries no echo; its answer does, and is as young as the call."""
    made = leading_alone()
    made.step(2.5, RosterChanged(frozenset({BOB})))
    other = Beat(BOB, 5, BOB, members_alive=2)
    assert not any(isinstance(effect, StepDown) for effect in made.step(2.6, other))
    assert isinstance(made.step(2.7, replace(other, echo_s=2.6))[0], StepDown)


def test_an_echo_of_a_time_to_come_proves_nothing() -> None:
    made = leading(4.0)
    for echo_s in (9.0, float("nan"), float("inf")):
        made.step(5.0, Beat(BOB, 1, BOB, members_alive=9, echo_s=echo_s))
        assert made.election.role is ElectionRole.LEADER
