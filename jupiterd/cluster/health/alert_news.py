"""Alerts of single events in the ledger: verdicts, and failures of cycles, runs and data sets.

Owns when an event is news: for SHOWN_S after it appears, and never where it was there at the first
look. Pure.
Doesn't know alerts' words (`alerts`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from typing import Final

from jupiterd.cluster.facts.facts import CycleFailed
from jupiterd.cluster.health.alerts import AlertCondition
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.island_runs import is_whole
from jupiterd.cluster.ledger.state import State
from jupiterd.errors import LossDivergedError

SHOWN_S: Final = 3600.0
"""Seconds that an event is news."""

FAILED: Final = "failed"
"""The cause of a failure: its key is of one failure alone."""

_KINDS = {"cycle": "the cycle", "train": "the training run", "data": "the data set"}


class LedgerNews:
    """The events that have appeared in a ledger since the first look at it."""

    def __init__(self) -> None:
        self._ledger: str | None = None
        self._seen_s: dict[str, float] = {}
        """Key -> when it was first seen; -inf: it was there before."""

    def look(
        self, now_s: float, ledger: str, found: Iterable[AlertCondition]
    ) -> list[AlertCondition]:
        """Return the conditions that are news; those of another cluster's ledger are old."""
        is_first, self._ledger = ledger != self._ledger, ledger
        seen_s = float("-inf") if is_first else now_s
        by_key = {finding.key: finding for finding in found}
        seen_before = (
            {} if is_first else self._seen_s
        )  # what a rollback brings back is no news either
        self._seen_s = {**dict.fromkeys(by_key, seen_s), **seen_before}
        return [by_key[key] for key in by_key if now_s - self._seen_s[key] < SHOWN_S]


def ledger_findings(state: State) -> tuple[AlertCondition, ...]:
    """Return the latest verdict of the newest cycle, and why it failed; so of runs and data sets.

    What is said of an older one ends where a newer one has begun: people look there by then.
    """
    return tuple(found for cycle in _newest(state) for found in _of_cycle(cycle))


def seen_failures(state: State) -> tuple[AlertCondition, ...]:
    """Return of the same cycles, runs and data sets why they failed, where people have seen it."""
    found = (_failure_of(cycle) for cycle in _newest(state) if cycle.lifecycle.is_dismissed)
    return tuple(replace(each, is_seen=True) for each in found if each is not None)


def name_of(cycle: CycleState) -> str:
    """Return what people call a cycle or a run."""
    kind = _KINDS[cycle.kind]
    return f"{kind} {cycle.label}" if cycle.label else kind


def _newest(state: State) -> Iterable[CycleState]:
    whole = (each for each in state.cycles.values() if each.begun is not None and is_whole(each))
    return {each.kind: each for each in sorted(whole, key=attrgetter("start_order"))}.values()


def _failure_of(cycle: CycleState) -> AlertCondition | None:
    own = "" if cycle.begun is None else cycle.begun.cycle
    if (failed := cycle.failed) is None:
        return None
    times = cycle.lifecycle.revived_at  # a failure after that is another one
    about = f"{own}/{times}" if times else own
    return AlertCondition(_code(failed), about, name_of(cycle), failed.message, cause=FAILED)


def _of_cycle(cycle: CycleState) -> Iterator[AlertCondition]:
    own = "" if cycle.begun is None else cycle.begun.cycle
    if (failure := _failure_of(cycle)) is not None and not cycle.lifecycle.is_dismissed:
        yield failure
    if cycle.verdicts:
        number = max(cycle.verdicts)
        verdict = cycle.verdicts[number]
        detail = f"{verdict.verdict} at {verdict.val_bpb:.4f} bits per byte, {verdict.reason}"
        about = f"{own}/{number}/{verdict.artifact[:12]}"  # it may be judged again
        subject = f"round {number} of {name_of(cycle)}"
        yield AlertCondition("verdict", about, subject, detail, cause=verdict.verdict)


def _code(failed: CycleFailed) -> str:
    return "loss-nan" if failed.code == LossDivergedError.code else "run-failed"
