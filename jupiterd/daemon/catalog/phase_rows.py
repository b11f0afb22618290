"""The rows of a cycle's phases: of each its state, its counts, how fast it goes and how long still.

Owns their keys. Pure: it is handed facts and the leader's telemetry. Doesn't know what a phase
does, or how a row is shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN, AttemptClosed
from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.trunk import start_of
from jupiterd.cluster.planning.predicted_throughput import PREDICTED, compared
from jupiterd.cluster.text.held_out_words import held_out_summary
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.lost_sources import lost_among
from jupiterd.cycle.data.phase_flow import Flow, flow_of
from jupiterd.cycle.generation.generation_options import given_up_words, without_words
from jupiterd.cycle.phases.table import skip_reason
from jupiterd.cycle.rounds.phase_summary import summarise, total_counts
from jupiterd.cycle.runs.run_phases import HELD_OUT
from jupiterd.daemon.catalog.effective_work import work_that_counts
from jupiterd.daemon.catalog.failed_phase import with_failed_phase
from jupiterd.daemon.catalog.generator_state import active_generators_before, has_templates
from jupiterd.daemon.catalog.islands_document import Islands, outer_steps
from jupiterd.daemon.catalog.phase_summary import elapsed_s_of, own_work, share_text, students_text
from jupiterd.document_schema import finite
from jupiterd.formats import counted

Live = Mapping[str, Any]


Rows = list[dict[str, Any]]

Settled = dict[int, Rows]
"""Round -> the rows of one that is over: facts alone make them. Nobody changes them."""


def phase_rows(
    cycle: CycleState, live: Live | None, islands: Islands, settled: Settled | None = None
) -> Rows:
    """Return a row for each phase of each round up to the one that runs.

    settled: what was found before of the same facts; it is filled here.
    """
    over, rows_of = cycle.rounds_committed, {} if settled is None else settled
    rows: Rows = []
    for number in range(1, min(over + 1, cycle.rounds_wanted) + 1):
        if number > over:
            rows += _rows_of(_Round(cycle, number, live, islands, is_over=False))
        elif number not in rows_of:
            rows_of[number] = _rows_of(_Round(cycle, number, live, islands, is_over=True))
        rows += rows_of.get(number, [])
    return rows


@dataclass(frozen=True)
class _Round:
    """A round, and what its rows are made of."""

    cycle: CycleState
    number: int
    live: Live | None
    islands: Islands
    is_over: bool

    @cached_property
    def generator(self) -> str:
        """The generator in force when it began."""
        return _generator_before(self.cycle, self.number)


def _rows_of(of: _Round) -> Rows:
    rows = [_phase(of, phase) for phase in _phases_of(of.cycle)]
    return rows if of.is_over else with_failed_phase(of.cycle, of.number, rows)


def _phases_of(cycle: CycleState) -> Sequence[Phase]:
    """Return what it goes through in a round; a run has few phases, and one round."""
    if cycle.started is not None:
        return list(Phase)
    preparing = [Phase.PACK] if cycle.requested is not None else []
    return [*preparing, Phase.TRAIN, Phase.EVALUATE] if cycle.training else preparing


def _phase(of: _Round, phase: Phase) -> dict[str, Any]:
    cycle, number, live = of.cycle, of.number, of.live
    document: dict[str, Any] = {
        "round": number,
        "phase": str(phase),
        "state": "waiting",
        "done": 0,
        "total": 0,
        "unit": "",
        "rate": None,
        "eta_s": None,
        "elapsed_s": None,
        "detail": "",
        "preparing": None,
        "values": {},
        **Flow().to_plain(),
    }
    has_passed = of.is_over or _has_passed(cycle, number, phase)
    done = work_that_counts(cycle.completed_in(number, phase).values())
    counts = total_counts([fact.counts for fact in own_work(phase, done)])
    document |= flow_of(phase, counts).to_plain()
    # Facts outrun telemetry: a phase whose successors have results isn't running any more.
    if live is not None and not has_passed and _is_at(live, number, phase):
        keys = ("done", "total", "unit", "rate", "eta_s", "elapsed_s", "values", "detail")
        told = {"state": "running", "preparing": live.get("preparing")}
        told |= {"stalled_s": live["stalled_s"]} if "stalled_s" in live else {}
        return document | told | {key: live[key] for key in keys}
    if phase is Phase.TRAIN:
        return document | _trained(cycle, number, of.islands)
    if done:
        return document | _finished(phase, done)
    if cycle.training is not None and phase is Phase.EVALUATE and of.is_over:
        return document | {"state": "skipped", "detail": f"there is no {HELD_OUT} text"}
    reason = skip_reason(number, of.generator, phase, has_templates=has_templates(cycle))
    if reason and (has_passed or cycle.failed is not None or _is_beyond(live, number, phase)):
        return document | {"state": "skipped", "detail": reason}
    return document


def _is_at(live: Live, number: int, phase: Phase) -> bool:
    return bool((live["round"], live["phase"]) == (number, phase))


def _is_beyond(live: Live | None, number: int, phase: Phase) -> bool:
    """Say whether a later phase of the same round runs."""
    order = list(Phase)
    return (
        live is not None
        and live["round"] == number
        and order.index(Phase(live["phase"])) > order.index(phase)
    )


def _finished(phase: Phase, done: Sequence[WorkCompleted]) -> dict[str, Any]:
    counts = total_counts([fact.counts for fact in own_work(phase, done)])
    count, unit, detail = summarise(phase, counts)
    lost = lost_among((fact.summary, fact.counts) for fact in done)
    summaries = [fact.summary for fact in done]
    without = [*without_words(summaries), *given_up_words(summaries)]
    held_out = [str(fact.summary["holdout"]) for fact in done if "holdout" in fact.summary]
    lost_text = (each.text() for each in lost)
    more = [*held_out, *lost_text, *without, *share_text(done), *students_text(done)]
    elapsed_s = elapsed_s_of(done)
    return {
        "state": "done",
        "done": count,
        "total": count,
        "unit": unit,
        "rate": count / elapsed_s if elapsed_s else None,
        "elapsed_s": elapsed_s,
        "detail": "; ".join(filter(None, [detail, *more])),
    }


def _trained(cycle: CycleState, number: int, islands: Islands) -> dict[str, Any]:
    last = cycle.last_checkpoint(number)
    if last is None or not last.is_final:
        return {}
    restarts, ranks, elapsed_s, untimed = 0, 0, 0.0, 0
    gangs = _gangs(cycle, number, islands)
    for each, own in gangs:
        closed = [
            each.attempts_closed[attempt] for attempt in own if attempt in each.attempts_closed
        ]
        elapsed_s = max(elapsed_s, sum(fact.elapsed_s for fact in closed))
        untimed += sum(_steps_of(each, fact) for fact in closed if fact.reason == LEFT_OPEN)
        ranks += len(each.attempts_opened[max(own)].gang) if own else 0
        restarts += max(len(own) - 1, 0)
    before = cycle.checkpoint(start_of(cycle, number))
    tokens = last.tokens - (0 if before is None else before.tokens)
    details = [f"loss {last.loss:.3f}", *held_out_summary(last), f"{tokens:,} tokens"]
    details.append(counted(ranks, "rank"))
    if restarts:
        details.append("begun anew " + ("once" if restarts == 1 else f"{restarts} times"))
    if untimed:
        details.append(f"without the time of {counted(untimed, 'step')} whose leader fell silent")
    if len(gangs) > 1:
        exchanges = counted(outer_steps(cycle, number), "outer step")
        details += [f"{len(gangs)} islands", exchanges]
    return {
        "state": "done",
        "done": last.step,
        "total": last.step,
        "unit": "steps",
        "rate": max(last.step - untimed, 0) / elapsed_s if elapsed_s else None,
        "elapsed_s": elapsed_s,
        "detail": ", ".join(details),
        "values": {"loss": finite(last.loss), **_speeds(cycle, number)},
        "in": manifest.sequences if (manifest := cycle.manifests.get(number)) else None,
        "out": last.step,
    }


def _speeds(cycle: CycleState, number: int) -> dict[str, float]:
    """Return what it was predicted to train on in a second, and what it did, as far as known."""
    found = compared(cycle, number)
    speeds = {PREDICTED: found.predicted, "tokens_per_s": found.measured}
    return {name: round(rate, 1) for name, rate in speeds.items() if rate is not None}


def _steps_of(cycle: CycleState, closed: AttemptClosed) -> int:
    """Return how many steps an attempt has added to the line that it started from."""
    opened, last = cycle.attempts_opened.get(closed.attempt), cycle.last_of_attempt(closed.attempt)
    return 0 if opened is None or last is None else last.step - opened.from_step


def _gangs(
    cycle: CycleState, number: int, islands: Islands
) -> Sequence[tuple[CycleState, Sequence[int]]]:
    """Return who has trained a round, with the attempts of each."""
    parts = [state for state, started in islands if started.parent_round == number]
    if parts:
        return [(state, [*state.attempts_opened]) for state in parts]
    opened = cycle.attempts_opened.values()
    return [(cycle, [each.attempt for each in opened if each.round == number])]


def _generator_before(cycle: CycleState, number: int) -> str:
    """Return the generator in force when a round began; one that people named counts more."""
    if cycle.started is not None and cycle.started.generator:
        return str(cycle.started.generator.get("name", "")) or "named"
    return active_generators_before(cycle, number).newest


def _has_passed(cycle: CycleState, number: int, phase: Phase) -> bool:
    order = list(Phase)
    return any(cycle.completed_in(number, later) for later in order[order.index(phase) + 1 :])
