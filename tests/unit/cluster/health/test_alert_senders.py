"""Each alert is sent once, whoever leads."""

from dataclasses import replace

from jupiterd.cluster.health.alert_senders import MAX_MARKS, SentAlerts, mark, sender_among
from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.values.severity import Severity
from jupiterd.ids import NodeId

A, B, C = (NodeId(letter * 32) for letter in "abc")


def alert(key: str, severity: Severity = Severity.WARNING) -> Alert:
    return Alert(key, "node-gone", severity, "attic is gone", "wake it", 0.0)


GONE, VERDICT = alert("node-gone:a"), alert("verdict:c/1", Severity.INFO)


def test_the_leader_sends_or_the_first_who_can() -> None:
    assert sender_among(B, {A, B, C}) == B
    assert sender_among(A, {B, C}) == B
    assert sender_among(None, {C}) == C
    assert sender_among(A, set()) is None


def test_what_was_sent_isnt_due_until_it_is_over() -> None:
    sent = SentAlerts()
    assert sent.due([GONE, VERDICT], Severity.INFO) == [GONE, VERDICT]
    assert sent.due([GONE, VERDICT], Severity.WARNING) == [GONE]
    sent.note([GONE.key])
    assert sent.due([GONE, VERDICT], Severity.INFO) == [VERDICT]
    sent.forget([GONE])
    assert sent.due([GONE], Severity.INFO) == [GONE]


def test_the_end_is_told_of_what_was_sent_and_does_end() -> None:
    sent, news = SentAlerts(), replace(VERDICT, code="verdict")
    assert sent.ended([GONE]) == []
    sent.note([GONE.key, news.key])
    assert sent.ended([GONE, news]) == [replace(GONE, is_over=True)]
    sent.forget([GONE])
    assert sent.ended([GONE]) == []


def test_a_new_sender_knows_what_the_old_one_told() -> None:
    old, new = SentAlerts(), SentAlerts()
    old.note([GONE.key])
    new.follow(old.recent_marks())
    assert new.due([GONE, VERDICT], Severity.INFO) == [VERDICT]
    old.forget([GONE])
    new.follow(old.recent_marks())
    assert new.due([GONE], Severity.INFO) == [GONE]


def test_one_that_was_started_anew_learns_from_all_who_followed_it() -> None:
    fresh = SentAlerts()
    fresh.learn([mark(GONE.key)])
    fresh.learn(None)
    assert fresh.due([GONE, VERDICT], Severity.INFO) == [VERDICT]


def test_what_is_told_is_short_and_what_others_tell_is_read_with_care() -> None:
    sent = SentAlerts()
    sent.note(f"verdict:c/{number}" for number in range(500))
    assert len(sent.recent_marks()) == MAX_MARKS
    assert sent.recent_marks()[-1] == mark("verdict:c/499")
    sent.follow(["short", 7, None, ["x"], *["ffffffff"] * 1000])
    assert sent.recent_marks() == ["ffffffff"]
    sent.follow({"no": "list"})
    assert sent.recent_marks() == []
