import math

import pytest

from jupiter_tui.model.clock import Moment
from jupiter_tui.model.curve import Point
from jupiter_tui.model.view import ViewModel, fold, with_link_of
from jupiterd.client.watch import Delta, Heartbeat, Link, LinkChanged, Snapshot
from tests.support.tui.documents import NOON, RECORDED, cycle, messages, trained

LATER = Moment(107.0, "12:03:48")
LIVE = LinkChanged(Link.LIVE)


def _folded(*told, at=NOON) -> ViewModel:
    view = ViewModel()
    for message in told:
        view = fold(view, message, at)
    return view


def test_before_the_first_word_nothing_is_known():
    view = ViewModel()
    assert (view.link, view.document, view.cycle, view.is_old) == (Link.CONNECTING, {}, {}, False)


def test_a_change_replaces_one_key_and_keeps_the_others():
    view = _folded(LIVE, Snapshot(RECORDED), Delta({"health": []}))
    assert view.document == RECORDED | {"health": []}


def test_a_lost_link_keeps_the_last_data_and_its_time():
    lost = LinkChanged(Link.LOST, "gone", 2.0, "wake it")
    view = fold(_folded(LIVE, Snapshot(RECORDED)), lost, LATER)
    assert view.document == RECORDED
    assert (view.received_at, view.retry_at_s, view.reason) == (NOON, 109.0, "gone")
    assert view.hint == "wake it"
    assert view.is_old


def test_while_the_link_is_made_anew_what_was_known_is_old():
    assert fold(_folded(LIVE, Snapshot(RECORDED)), LinkChanged(Link.CONNECTING), LATER).is_old


def test_a_heartbeat_is_a_word_too():
    assert fold(_folded(LIVE, Snapshot(RECORDED)), Heartbeat(1), LATER).received_at == LATER


def test_folding_leaves_the_view_before_as_it_was():
    before = _folded(LIVE, Snapshot(RECORDED))
    fold(before, trained(999, 1.0), LATER)
    assert before == _folded(LIVE, Snapshot(RECORDED))


def test_the_loss_of_each_step_is_gathered():
    view = _folded(LIVE, trained(4, 3.0), trained(8, 2.5), trained(8, 2.5))
    assert view.curve.points == (Point(4, 3.0), Point(8, 2.5))


def test_a_curve_stays_after_the_training_has_ended():
    done = [row | {"state": "done"} for row in RECORDED["cycle"]["phases"]]
    view = _folded(LIVE, trained(4, 3.0), Delta({"cycle": cycle(phases=done)}))
    assert view.curve.points == (Point(4, 3.0),)


def test_a_loss_that_is_no_number_is_no_point():
    assert _folded(LIVE, trained(4, 3.0), trained(8, math.nan)).curve.points == (Point(4, 3.0),)


def test_a_document_without_a_cycle_is_folded():
    assert _folded(LIVE, Snapshot({"schema": "jupiter/v1", "cycle": None})).cycle == {}


def test_a_picture_that_is_held_shows_the_link_as_it_is():
    held = _folded(*messages(3))
    now = fold(fold(held, trained(400, 1.0), LATER), LinkChanged(Link.STALE, "silent"), LATER)
    shown = with_link_of(held, now)
    assert (shown.link, shown.reason) == (Link.STALE, "silent")
    assert (shown.curve, shown.received_at) == (held.curve, NOON)


@pytest.mark.parametrize(
    ("cycle", "train", "shown"),
    [
        (None, None, None),
        ("running", None, "cycle"),
        (None, "finished", "train"),
        ("finished", "running", "train"),
        ("finished", "waiting", "train"),
        ("finished", "finished", "cycle"),
        ("running", "stopped", "cycle"),
    ],
)
def test_what_trains_now_is_shown_cycle_or_run(cycle, train, shown):
    states = {"cycle": cycle, "train": train}
    document = {
        noun: None if state is None else {"kind": noun, "state": state}
        for noun, state in states.items()
    }
    assert ViewModel(document=document).cycle.get("kind") == shown
