"""Events: what changed between two looks at a cluster."""

import pytest

from jupiterd.cluster.health import Severity
from jupiterd.cluster.noticed import noticed

ADA = {"id": "a" * 32, "name": "ada", "state": "alive", "role": "trainer", "reason": "fast"}
BOB = {"id": "b" * 32, "name": "bob", "state": "alive", "role": "idle", "reason": "no engine"}
CYCLE = {
    "id": "c0ffee00", "domain": "python", "state": "running", "round": 1, "phase": "collect",
    "verdicts": [], "events": [],
}  # fmt: skip
BEFORE = {
    "cluster": {"leader": ADA["id"]}, "nodes": [ADA, BOB], "cycle": CYCLE, "train": None,
    "health": [],
}  # fmt: skip


def seen(**changed):
    return [(str(e.level), e.code, e.text) for e in noticed(BEFORE, BEFORE | changed)]


def test_nothing_changed_is_no_event_and_the_first_look_is_none():
    assert seen() == []
    assert list(noticed({}, BEFORE)) == []


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ([ADA], ("info", "node-removed", "bob is no longer a member")),
        ([ADA, BOB | {"state": "gone"}], ("warning", "node-gone", "bob went away")),
        (
            [ADA, BOB | {"role": "generator"}],
            ("info", "role-assigned", "bob is generator: no engine"),
        ),
        ([ADA, BOB, BOB | {"id": "d", "name": "dot"}], ("info", "node-joined", "dot is a member")),
        (
            [ADA, BOB, {"id": "d", "name": "dot", "state": "pending"}],
            ("warning", "node-waits", "dot waits to be let in: jupiterctl node approve dot"),
        ),
    ],
)
def test_each_change_of_a_machine_is_told(nodes, told):
    assert seen(nodes=nodes) == [told]


def test_a_machine_that_was_only_suspected_is_no_news_and_one_that_is_back_is():
    suspect, gone = BOB | {"state": "suspect"}, BEFORE | {"nodes": [ADA, BOB | {"state": "gone"}]}
    assert seen(nodes=[ADA, suspect]) == []
    assert [event.code for event in noticed(gone, BEFORE)] == ["node-back"]


def test_a_machine_that_waits_and_goes_again_never_was_a_member():
    waiting = BEFORE | {"nodes": [ADA, BOB, {"id": "d", "name": "dot", "state": "pending"}]}
    assert list(noticed(waiting, BEFORE)) == []


@pytest.mark.parametrize(("leader", "code"), [(BOB["id"], "leader-elected"), (None, "no-leader")])
def test_leaders_are_told(leader, code):
    assert [event[1] for event in seen(cluster={"leader": leader})] == [code]


def test_a_warning_is_told_when_it_comes_and_when_it_is_over():
    warned = BEFORE | {"health": [{"code": "disk-full", "severity": "error", "title": "no room"}]}
    (came,) = noticed(BEFORE, warned)
    (over,) = noticed(warned, BEFORE)
    assert (came.level, came.code, came.text) == (Severity.ERROR, "disk-full", "no room")
    assert (over.level, over.text) == (Severity.INFO, "over: no room")


@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        ({"phase": "train"}, ["phase-began"]),
        ({"state": "paused"}, ["run-changed"]),
        ({"state": "failed", "failure": {"message": "no text"}}, ["run-failed"]),
        ({"events": [{"seq": 1, "text": "epoch 1: 2 ranks"}]}, ["run-told"]),
        (
            {"verdicts": [{"round": 1, "verdict": "HOLD", "reason": "not shown"}]},
            ["verdict-reached"],
        ),
        ({"id": "decade00"}, ["run-started", "phase-began"]),
    ],
)
def test_what_a_cycle_does_is_told(changed, codes):
    assert [event[1] for event in seen(cycle=CYCLE | changed)] == codes


def test_a_name_can_not_steer_the_terminal():
    ((_, _, text),) = seen(nodes=[ADA, BOB, BOB | {"id": "d", "name": "e\x1b[2J"}])
    assert "\x1b" not in text
