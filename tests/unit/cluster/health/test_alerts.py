"""When an alert is raised, when it is over, and that nothing flaps."""

import pytest

from jupiterd.cluster.health import health
from jupiterd.cluster.health.alerts import GIB, TABLE, AlertBook, AlertCondition, strain_findings
from jupiterd.cluster.text.health_words import NEWS
from jupiterd.cluster.values.severity import Severity, rank
from jupiterd.ids import NodeId

NODE = NodeId("a1" * 16)
GONE = AlertCondition("node-gone", NODE, "attic")
GONE_RULE = TABLE["node-gone"]


def low(free_gib: float, size_gib: float, *, was_low: bool = False) -> bool:
    strain = {"disk_free_bytes": free_gib * GIB, "disk_bytes": size_gib * GIB}
    raised = {f"disk-low:{NODE}"} if was_low else set[str]()
    return any(f.code == "disk-low" for f in strain_findings(NODE, "attic", strain, raised))


def test_an_alert_is_raised_once_it_has_held_long_enough() -> None:
    book = AlertBook()
    assert book.look(0.0, [GONE]) == ((), ())
    assert book.look(GONE_RULE.hold_s - 1, [GONE]) == ((), ())
    (alert,), over = book.look(GONE_RULE.hold_s, [GONE])
    assert (alert.code, alert.title, alert.since_s, over) == ("node-gone", "attic is gone", 0.0, ())
    assert book.look(GONE_RULE.hold_s + 1, [GONE]) == ((), ())
    assert book.raised == (alert,)


def test_what_stops_and_begins_again_must_hold_anew() -> None:
    book = AlertBook()
    book.look(0.0, [GONE])
    book.look(GONE_RULE.hold_s - 1, [])
    assert book.look(GONE_RULE.hold_s + 1, [GONE]) == ((), ())
    assert book.raised == ()


def test_an_alert_is_over_once_it_hasnt_held_long_enough_and_a_flapping_one_stays() -> None:
    book = AlertBook()
    book.look(0.0, [GONE])
    book.look(60.0, [GONE])
    for at_s in range(62, 200, 20):  # back for less than it takes, gone again
        assert book.look(float(at_s), []) == ((), ())
        assert book.look(float(at_s) + 10, [GONE]) == ((), ())
    assert book.look(200.0, []) == ((), ())
    fresh, (over,) = book.look(202.0 + GONE_RULE.clear_s, [])
    assert (fresh, over.code, book.raised) == ((), "node-gone", ())


def test_a_title_follows_what_it_tells_of_and_steers_no_terminal() -> None:
    book = AlertBook()
    book.look(0.0, [AlertCondition("stalled-step", "r1", "the cycle \x1b[2J", "2 minutes")])
    book.look(60.0, [AlertCondition("stalled-step", "r1", "the cycle x", "3 minutes")])
    assert book.raised[0].title == "the cycle x stands still: no step for 3 minutes"
    book.look(
        61.0, [AlertCondition("stalled-step", "r1", "the cycle \x1b[2J" + "x" * 900, "3 minutes")]
    )
    assert book.raised[0].title.isprintable()
    assert len(book.raised[0].title) <= 300


def test_the_gravest_comes_first() -> None:
    book = AlertBook()
    book.look(
        0.0,
        [
            AlertCondition("verdict", "c/1", "round 1"),
            AlertCondition("loss-nan", "r1", "the run x"),
        ],
    )
    assert [alert.code for alert in book.raised] == ["loss-nan", "verdict"]
    severities = [rank(rule.severity) for rule in TABLE.values()]
    assert severities == sorted(severities, reverse=True)


@pytest.mark.parametrize(
    ("free_gib", "size_gib", "is_low"),
    [(1.9, 20, True), (2.1, 20, False), (4.9, 100, True), (5.1, 100, False),
     (19.9, 8000, True), (20.1, 8000, False)],
)  # fmt: skip
def test_little_room_is_a_share_of_the_disk_within_bounds(
    free_gib: float, size_gib: float, *, is_low: bool
) -> None:
    assert low(free_gib, size_gib) is is_low


def test_a_disk_that_was_low_must_have_more_room_than_it_took_to_be_low() -> None:
    assert not low(5.5, 100)
    assert low(5.5, 100, was_low=True)
    assert not low(6.5, 100, was_low=True)


def test_what_a_machine_doesnt_tell_isnt_wrong() -> None:
    assert [*strain_findings(NODE, "attic", {}, set())] == []
    assert [*strain_findings(NODE, "attic", {"disk_free_bytes": 0, "disk_bytes": 0}, set())] == []


def test_a_hot_machine_is_told_of() -> None:
    (found,) = strain_findings(NODE, "attic", {"throttled_gpus": 2}, set())
    assert (found.code, found.detail) == ("throttling", "2 GPUs")


def test_every_alert_has_words_and_a_hint_that_health_doesnt_say_otherwise() -> None:
    for code, rule in TABLE.items():
        assert "{subject}" in rule.title
        assert rule.hint
        assert not rule.hint.endswith(".")
        if code == "link-out":  # health says it on that machine, alerts on others
            assert rule.severity == health.TABLE[code].severity
        elif code in health.TABLE:
            row = health.TABLE[code]
            assert (rule.severity, rule.title, rule.hint) == (row.severity, row.title, row.hint)
    assert [*Severity] == sorted(Severity, key=rank)


def test_what_is_only_news_is_an_alert_that_there_is() -> None:
    assert TABLE.keys() > NEWS
