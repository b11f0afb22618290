"""Sums up a phase's finished work, apart from that of small students and the judge.

Owns distinguishing them, and the text of the students. Doesn't know how any of it is done.
"""

from collections.abc import Sequence

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.base.whole_counts import whole_count
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.phases.counting_verdict import verdict_item
from jupiterd.cycle.phases.judge import JUDGE
from jupiterd.cycle.phases.proxies import PROXIES


def own_work(phase: Phase, done: Sequence[WorkCompleted]) -> list[WorkCompleted]:
    """Return the work that the phase itself is: of two verdicts the one that counts."""
    own = [fact for fact in done if not _is_concurrent(fact)]
    return _verdict_that_counts(own) if phase is Phase.GATE else own


def _verdict_that_counts(judged: Sequence[WorkCompleted]) -> list[WorkCompleted]:
    """Return of the newest candidate's verdicts the one with the most evidence."""
    if not judged:
        return []
    found = {fact.item: fact for fact in judged}
    newest = judged[-1]
    candidate = newest.item.rpartition("/")[2]
    return [found.get(verdict_item(newest.round, candidate, found), newest)]


def elapsed_s_of(done: Sequence[WorkCompleted]) -> float:
    """Return how long it took: items of a kind side by side, one kind after the other."""
    longest: dict[str, float] = {}
    for fact in done:
        kind = _kind(fact)
        longest[kind] = max(longest.get(kind, 0.0), fact.elapsed_s)
    return sum(longest.values())


def students_text(done: Sequence[WorkCompleted]) -> list[str]:
    """Return the text of a phase's small students for people; empty where there are none."""
    count = sum(whole_count(fact.counts, "proxy_students") for fact in done)
    return [f"{count} small student{'' if count == 1 else 's'} trained"] if count else []


def share_text(done: Sequence[WorkCompleted]) -> list[str]:
    """Return why there may be so much synthetic text, where some was packed."""
    reasons = (str(f.summary.get("share_reason", "")) for f in done if _packed_synthetic(f))
    return [f"synthetic share {reason}" for reason in reasons if reason]


def _packed_synthetic(fact: WorkCompleted) -> bool:
    return bool(fact.counts.get("synthetic_documents"))


def _is_concurrent(fact: WorkCompleted) -> bool:
    return any(f"/{each}/" in fact.item for each in (PROXIES, JUDGE))


def _kind(fact: WorkCompleted) -> str:
    """Return which concurrent step of the phase a fact is of; all else is one kind."""
    if not _is_concurrent(fact):
        return ""
    if fact.counts.get("proxy_students"):
        return "student"
    return fact.item.split("/")[3].partition("-")[0]
