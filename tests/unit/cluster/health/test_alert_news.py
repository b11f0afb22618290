"""What of a ledger is news."""

from dataclasses import replace

import pytest

from jupiterd.cluster.facts.facts import CycleFailed, Fact, VerdictReached
from jupiterd.cluster.facts.lifecycle_facts import CycleRevived, FailureDismissed
from jupiterd.cluster.health.alert_news import SHOWN_S, LedgerNews, ledger_findings
from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.cluster.ledger.entry import EntryWriter
from jupiterd.ids import ArtifactId, CycleId
from tests.support.cluster.building import (
    CYCLE,
    NODES,
    checkpoint,
    founded_ledger,
    make_entry,
    round_over,
    started,
    training,
)

ONE, TWO = (
    AlertCondition("verdict", "c/1", "round 1 of x"),
    AlertCondition("verdict", "c/2", "round 2 of x"),
)


def test_what_was_there_at_the_first_look_is_no_news() -> None:
    news = LedgerNews()
    assert news.look(0.0, "home", [ONE]) == []
    assert news.look(1.0, "home", [ONE, TWO]) == [TWO]
    assert news.look(2.0, "home", [TWO]) == [TWO]


def test_news_grow_old() -> None:
    news = LedgerNews()
    news.look(0.0, "home", [])
    assert news.look(1.0, "home", [ONE]) == [ONE]
    assert news.look(SHOWN_S, "home", [ONE]) == [ONE]
    assert news.look(SHOWN_S + 1, "home", [ONE]) == []


def test_what_another_clusters_ledger_brings_is_old() -> None:
    news = LedgerNews()
    news.look(0.0, "own", [])
    assert news.look(1.0, "home", [ONE, TWO]) == []
    assert news.look(2.0, "home", [ONE, TWO]) == []


def test_what_is_told_again_after_another_was_taken_back_is_no_news() -> None:
    news = LedgerNews()
    news.look(0.0, "home", [ONE])
    assert news.look(1.0, "home", [TWO]) == [TWO]
    assert news.look(2.0, "home", [ONE]) == []


def test_a_round_that_is_judged_again_is_news() -> None:
    first, second = (
        VerdictReached(CYCLE, 1, "HOLD", "so", 2.5, ArtifactId(folder), ArtifactId("m1"), "")
        for folder in ("v1", "v2")
    )
    told = [
        _verdicts_of(started(), checkpoint("m1", is_final=True), each, round_over("m1"))
        for each in (first, second)
    ]
    assert [len(each) for each in told] == [1, 1]
    assert told[0].keys() != told[1].keys()


def _verdicts_of(*facts: Fact) -> dict[str, AlertCondition]:
    writer = EntryWriter(NODES[0], "e" * 32)
    ledger = founded_ledger(writer)
    ledger.add(make_entry(ledger, 1, writer, facts))
    return {found.key: found for found in ledger_findings(ledger.state)}


def test_the_ledger_tells_of_the_latest_verdict_and_of_what_failed() -> None:
    writer = EntryWriter(NODES[0], "e" * 32)
    ledger = founded_ledger(writer)
    facts = [
        started(),
        checkpoint("m1", is_final=True),
        VerdictReached(
            CYCLE, 1, "PROMOTE", "it is better", 2.25, ArtifactId("v"), ArtifactId("m1"), ""
        ),
        round_over("m1", verdict="PROMOTE"),
    ]
    ledger.add(make_entry(ledger, 1, writer, facts))
    (verdict,) = ledger_findings(ledger.state)
    assert verdict.key == f"verdict:{CYCLE}/1/v"
    assert verdict.subject == "round 1 of the cycle python"
    assert verdict.detail == "PROMOTE at 2.2500 bits per byte, it is better"


@pytest.mark.parametrize(
    ("code", "alert"), [("loss-diverged", "loss-nan"), ("empty-source", "run-failed")]
)
def test_a_loss_that_is_no_number_has_an_alert_of_its_own(code: str, alert: str) -> None:
    writer = EntryWriter(NODES[0], "e" * 32)
    ledger = founded_ledger(writer)
    ledger.add(make_entry(ledger, 1, writer, [started(), CycleFailed(CYCLE, code, "why", "hint")]))
    (found,) = ledger_findings(ledger.state)
    assert (found.code, found.about, found.detail) == (alert, CYCLE, "why")


def test_what_is_said_of_an_older_cycle_ends_where_a_newer_one_has_begun() -> None:
    failed = CycleFailed(CYCLE, "empty-source", "nothing there", "")
    assert len(_verdicts_of(started(), failed)) == 1
    later = replace(started(), cycle=CycleId("e" * 16), started_at="2026-02-01T00:00:00Z")
    assert _verdicts_of(started(), failed, later) == {}
    of_a_run = replace(training(), cycle=CycleId("e" * 16), started_at="2026-02-01T00:00:00Z")
    assert len(_verdicts_of(started(), failed, of_a_run)) == 1, "it isn't a cycle"


def test_an_alarm_that_people_have_seen_is_told_no_more_unless_it_fails_again() -> None:
    writer = EntryWriter(NODES[0], "e" * 32)
    ledger = founded_ledger(writer)
    failed = CycleFailed(CYCLE, "empty-source", "nothing there", "")
    told: list[int] = []
    news, keys = LedgerNews(), set[str]()
    for hour, fact in enumerate((
        started(), failed, FailureDismissed(CYCLE), CycleRevived(CYCLE), failed,
    )):  # fmt: skip
        ledger.add(make_entry(ledger, 1, writer, [fact]))
        found = news.look(2 * hour * SHOWN_S, "home", ledger_findings(ledger.state))
        told.append(len(found))
        keys |= {each.key for each in found}
    assert told == [0, 1, 0, 0, 1]
    assert len(keys) == 2, "each failure is an alarm of its own"
