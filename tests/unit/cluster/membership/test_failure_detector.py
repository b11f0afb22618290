import math

from jupiterd.cluster.membership.failure_detector import (
    AddressRefused,
    Changed,
    FailureDetector,
    Heard,
    Liveness,
    RosterChanged,
    SaidGoodbye,
    Ticked,
)
from jupiterd.cluster.values.timing import LAN
from jupiterd.ids import NodeId

ME, BOB, EVE, DAN = (NodeId(letter * 32) for letter in "abed")
ALIVE, SUSPECT, GONE = Liveness.ALIVE, Liveness.SUSPECT, Liveness.GONE


def with_members(*others: NodeId) -> FailureDetector:
    membership = FailureDetector(ME, 0.0)
    membership.step(0.0, RosterChanged(frozenset((ME, *others))))
    return membership


def all_heard(*others: NodeId) -> FailureDetector:
    membership = with_members(*others)
    for node in others:
        membership.step(0.0, Heard(node))
    return membership


def test_a_new_member_is_suspect_until_it_is_heard() -> None:
    membership = FailureDetector(ME, 0.0)
    changes = membership.step(0.0, RosterChanged(frozenset((ME, BOB))))
    assert changes == (Changed(BOB, GONE, SUSPECT, "a member, not heard yet"),)
    assert membership.last_heard_s(BOB, 1.0) is None
    assert membership.step(1.0, Heard(BOB)) == (Changed(BOB, SUSPECT, ALIVE, "heard"),)
    assert membership.last_heard_s(BOB, 3.0) == 2.0


def test_a_member_that_never_answers_is_gone_after_fifteen_seconds() -> None:
    membership = with_members(BOB)
    assert membership.step(14.9, Ticked()) == ()
    (change,) = membership.step(15.1, Ticked())
    assert (change.before, change.after) == (SUSPECT, GONE)


def test_a_silent_node_is_suspect_after_five_seconds_and_gone_after_fifteen() -> None:
    membership = all_heard(BOB)
    assert membership.step(4.9, Ticked()) == ()
    assert membership.step(5.1, Ticked()) == (Changed(BOB, ALIVE, SUSPECT, "not heard for 5.1 s"),)
    assert membership.alive() == {ME}
    assert membership.present() == {ME, BOB}
    assert membership.step(15.1, Ticked()) == (Changed(BOB, SUSPECT, GONE, "not heard for 15.1 s"),)
    assert membership.present() == {ME}


def test_a_gone_node_that_is_heard_again_is_alive() -> None:
    membership = all_heard(BOB)
    membership.step(20.0, Ticked())
    assert membership.step(21.0, Heard(BOB)) == (Changed(BOB, GONE, ALIVE, "heard"),)


def test_a_node_that_another_one_hears_is_alive() -> None:
    membership = all_heard(BOB, EVE)
    for second in range(1, 30):
        membership.step(float(second), Heard(EVE, {BOB: 0.5}))
        assert membership.step(float(second), Ticked()) == ()
    assert membership.liveness(BOB) is ALIVE
    assert membership.last_heard_s(BOB, 29.5) == 1.0
    assert "b" not in membership.ages(29.0)
    assert membership.ages(29.0)[BOB] == 29.0  # what we heard ourselves, no rumour


def test_the_report_of_a_node_that_fell_silent_itself_counts_no_more() -> None:
    membership = all_heard(BOB, EVE)
    membership.step(4.0, Heard(EVE, {BOB: 0.0}))
    assert membership.step(8.9, Ticked()) == ()
    assert {change.node for change in membership.step(9.1, Ticked())} == {BOB, EVE}
    membership.step(15.5, Ticked())
    assert membership.liveness(EVE) is SUSPECT
    assert membership.liveness(BOB) is GONE


def test_rumours_of_a_dead_node_do_not_keep_it_alive() -> None:
    membership = all_heard(BOB, EVE)
    for second in range(1, 17):
        membership.step(float(second), Heard(EVE, {BOB: float(second)}))
        membership.step(float(second), Ticked())
    assert membership.liveness(BOB) is GONE
    assert membership.liveness(EVE) is ALIVE


def test_senseless_ages_are_ignored() -> None:
    membership = all_heard(BOB, EVE)
    membership.step(6.0, Heard(EVE, {BOB: -100.0, DAN: 1.0}))
    membership.step(6.0, Heard(EVE, {BOB: math.nan}))
    membership.step(6.0, Heard(EVE, {BOB: math.inf}))
    assert {change.node for change in membership.step(6.0, Ticked())} == {BOB}


def test_a_goodbye_makes_a_node_gone_at_once_and_late_reports_do_not_undo_it() -> None:
    membership = all_heard(BOB, EVE)
    assert membership.step(1.0, SaidGoodbye(BOB)) == (Changed(BOB, ALIVE, GONE, "said goodbye"),)
    assert membership.step(1.1, Heard(EVE, {BOB: 0.0})) == ()
    assert membership.step(1.2, Ticked()) == ()
    assert BOB not in membership.ages(1.2)
    assert membership.step(4.0, Heard(EVE, {BOB: 0.2}))[0].after is ALIVE


def test_a_refused_connection_makes_a_node_gone_until_it_is_heard() -> None:
    membership = all_heard(BOB)
    (change,) = membership.step(1.0, AddressRefused(BOB))
    assert (change.after, change.reason) == (GONE, "refuses connections")
    assert membership.step(1.5, AddressRefused(BOB)) == ()
    assert membership.step(2.0, Heard(BOB)) == (Changed(BOB, GONE, ALIVE, "heard"),)


def test_after_our_own_stall_nobody_is_accused() -> None:
    membership = all_heard(BOB)
    assert membership.step(60.0, Ticked(loop_lag_s=59.5)) == ()
    assert membership.step(62.4, Ticked()) == ()
    assert membership.step(62.6, Ticked())[0].after is SUSPECT


def test_a_stall_does_not_clear_a_suspicion() -> None:
    membership = all_heard(BOB)
    membership.step(6.0, Ticked())
    assert membership.step(60.0, Ticked(loop_lag_s=54.0)) == ()
    assert membership.liveness(BOB) is SUSPECT
    assert membership.step(67.6, Ticked())[0].after is GONE


def test_a_message_that_waited_while_we_slept_accuses_nobody_else() -> None:
    membership = all_heard(BOB, EVE)
    assert membership.step(60.0, Heard(EVE)) == ()


def test_who_went_away_was_heard_all_the_same() -> None:
    for event in (AddressRefused(BOB), SaidGoodbye(BOB)):
        membership = all_heard(BOB)
        membership.step(1.0, event)
        assert membership.liveness(BOB) is GONE
        assert membership.last_heard_s(BOB, 5.0) == 5.0


def test_who_is_no_member_is_not_heard() -> None:
    membership = all_heard(BOB)
    for event in (Heard(EVE), AddressRefused(EVE), SaidGoodbye(EVE)):
        assert membership.step(1.0, event) == ()
    assert membership.liveness(EVE) is GONE
    assert membership.last_heard_s(EVE, 1.0) is None


def test_a_removed_member_is_gone() -> None:
    membership = all_heard(BOB, EVE)
    membership.step(1.0, AddressRefused(EVE))
    assert membership.step(2.0, RosterChanged(frozenset((ME,)))) == (
        Changed(BOB, ALIVE, GONE, "no longer a member"),
    )
    assert membership.present() == {ME}


def test_the_same_roster_again_changes_nothing() -> None:
    membership = all_heard(BOB)
    assert membership.step(1.0, RosterChanged(frozenset((BOB,)))) == ()


def test_this_node_is_always_alive_to_itself() -> None:
    membership = with_members()
    assert membership.liveness(ME) is ALIVE
    assert membership.last_heard_s(ME, 9.0) == 0.0
    assert membership.alive() == {ME}


def test_nobody_waits_for_the_answer_of_one_not_heard_for_a_while() -> None:
    membership = all_heard(BOB, EVE)
    membership.step(10.0, Heard(BOB))
    membership.step(12.0, Heard(EVE))
    assert membership.answering(10.0 + LAN.quiet_s - 0.1) == {ME, BOB, EVE}
    assert membership.answering(10.0 + LAN.quiet_s + 0.1) == {ME, EVE}
    assert membership.alive() == {ME, BOB, EVE}


def test_one_whom_others_hear_and_we_do_not_answers_nothing_of_ours() -> None:
    membership = all_heard(BOB, EVE)
    membership.step(4.0, Heard(EVE, {BOB: 0.1}))
    membership.step(6.0, Heard(EVE, {BOB: 0.1}))
    assert membership.step(6.1, Ticked()) == ()
    assert membership.answering(6.1) == {ME, EVE}


def test_our_own_lateness_makes_nobody_quiet() -> None:
    membership = all_heard(BOB)
    membership.step(4.0, Ticked(loop_lag_s=3.5))
    assert membership.answering(4.0 + LAN.quiet_s - 0.1) == {ME, BOB}
    assert membership.answering(4.0 + LAN.quiet_s + 0.1) == {ME}


def test_whoever_takes_over_from_a_silent_leader_waits_for_no_answer_of_that_one() -> None:
    assert LAN.quiet_s < LAN.election_min_s + LAN.answer_s
