"""The document of a cycle, a training run or a data set's: of facts and the leader's telemetry.

Owns its keys. Pure: it is handed all it needs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import CheckpointCommitted, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import RUNNING, Begun, CycleState
from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cluster.planning.predicted_throughput import PREDICTED, ThroughputComparison, compared
from jupiterd.cluster.text.held_out_words import (
    began_with,
    early_end,
    ends_worse,
    held_out_readings,
    worse_end,
)
from jupiterd.cluster.training.attempt_numbers import attempt_number
from jupiterd.cluster.training.tunnel_plan import is_encrypted
from jupiterd.cluster.values.branch_names import branch_name
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.data.lost_sources import lost_among
from jupiterd.cycle.runs.run_phases import evaluation_id
from jupiterd.cycle.training.peak_flops import utilisation
from jupiterd.daemon.catalog.gate_history import judged
from jupiterd.daemon.catalog.generator_state import generation_document
from jupiterd.daemon.catalog.islands_document import Islands, inner_steps, island_rows, outer_steps
from jupiterd.daemon.catalog.pause_facts import WAITING
from jupiterd.daemon.catalog.phase_rows import Live, Settled, phase_rows
from jupiterd.daemon.cycles.lost_generator import lost_generator
from jupiterd.daemon.queries.cycle.heavy_drops import heavy_drops_of
from jupiterd.document_schema import finite
from jupiterd.errors import Bug
from jupiterd.formats import counted
from jupiterd.ids import NodeId, short

_NOBODY: Mapping[NodeId, str] = {}

ATTEMPT_SEQ = 1000
"""How far the numbers of two attempts' events are apart: suspensions lie in between."""

VERDICT_NUMBERS = (
    "incumbent_bpb",
    "base_bpb",
    "forgetting",
    "generator_bpb",
    "byte_bpb",
    "unigram_bpb",
    "improvement_bpb",
    "lower_bound_bpb",
    "margin_bpb",
    "vault_gap_bpb",
    "vault_alarm",
    "teaching_gain_bpb",
    "control_gain_bpb",
)


def cycle_document(  # noqa: PLR0913 - all that it is made of
    cycle: CycleState,
    live: Live | None,
    *,
    model: str | None,
    has_leader: bool,
    islands: Islands = (),
    names: Mapping[NodeId, str] = _NOBODY,
    settled: Settled | None = None,
) -> dict[str, Any]:
    """Return the document of one cycle.

    Args:
        cycle: what the ledger says.
        live: the leader's telemetry of the running phase, if there is any.
        model: folder of the newest model on this machine.
        has_leader: whether anybody conducts it.
        islands: the runs that train its islands, in the order of their rounds and numbers.
        names: of the members.
        settled: the rows of rounds that are over, found before of the same facts.
    """
    begun = _begun(cycle)
    current = min(cycle.rounds_committed + 1, cycle.rounds_wanted)
    shown = [(state, started) for state, started in islands if started.parent_round == current]
    last = next(
        (
            fact
            for fact in reversed(cycle.canonical_branch())
            if isinstance(fact, CheckpointCommitted)
        ),
        None,
    )
    live = None if live is None else _with_finite_values(live)
    training = live if live and live["phase"] == Phase.TRAIN else None
    seats = gang_rows(training["gang"]) if training else []
    verdicts = _verdicts(cycle)
    gangs = [cycle, *(state for state, _ in islands)]
    return {
        "id": begun.cycle,
        "kind": cycle.kind,
        "domain": cycle.label,
        "state": _state(cycle, has_leader=has_leader),
        "rounds": cycle.rounds_wanted,
        "round": current,
        "phase": None if live is None else live["phase"],
        **_learning(cycle, live, last, current),
        "val_bpb": verdicts[-1]["val_bpb"] if verdicts else _scored_bpb(cycle),
        **_speed(cycle, live, current),
        **_newest_attempt(gangs),
        "gang": _named(seats, names),
        "gang_encrypted": _is_encrypted(cycle, seats),
        "stage": _stage(gangs) if seats else None,
        "generators": _named(_generators(cycle, live, current), names),
        **generation_document(cycle),
        "islands": island_rows(cycle, shown, live),
        "outer_steps": outer_steps(cycle, current),
        "inner_steps": inner_steps(cycle, current),
        "verdicts": verdicts,
        "model": model,
        "failure": _failure(cycle),
        "paused": _paused(cycle, names),
        "lost_sources": _lost_sources(cycle),
        "heavy_drops": [drop.to_plain() for drop in heavy_drops_of(cycle)],
        "lost_generator": lost_generator(cycle),
        "phases": phase_rows(cycle, live, islands, settled),
        "events": _events(cycle, islands),
    }


def _learning(
    cycle: CycleState, live: Live | None, last: CheckpointCommitted | None, current: int
) -> dict[str, Any]:
    """Return how far training is: of the running phase, else of the last checkpoint."""
    training = live if live and live["phase"] == Phase.TRAIN else None
    learnt = _learnt(live)
    return {
        "step": training["done"] if training else _step(cycle, last, current),
        "total_steps": training["total"] if training else None,
        "tokens": int(learnt["tokens"]) if "tokens" in learnt else (last.tokens if last else 0),
        "loss": learnt.get("loss", finite(last.loss) if last else None),
        **_held_out(learnt, last, current),
    }


def _speed(cycle: CycleState, live: Live | None, current: int) -> dict[str, Any]:
    """Return the throughput, measured and predicted, and the training values beside it."""
    values, learnt = _values(live), _learnt(live)
    is_training = live is not None and live["phase"] == Phase.TRAIN
    speeds = _live_speeds(values) if is_training else compared(cycle, current)
    rate = values.get("tokens_per_s")
    return {
        "tokens_per_s": rate,
        "lr": learnt.get("lr"),
        "grad_norm": learnt.get("grad_norm"),
        "mfu": utilisation(rate, values.get("flops_per_token"), values.get("peak_flops_per_s")),
        "predicted_tokens_per_s": speeds.predicted,
        "measured_tokens_per_s": speeds.measured,
    }


def _values(live: Live | None) -> Mapping[str, Any]:
    return dict((live or {}).get("values", {}))


def _learnt(live: Live | None) -> Mapping[str, Any]:
    """Return the values of training; none in the gate: its small students have a loss, too."""
    return _values(live) if live and live["phase"] == Phase.TRAIN else {}


def _live_speeds(values: Mapping[str, Any]) -> ThroughputComparison:
    return ThroughputComparison(values.get(PREDICTED), values.get("tokens_per_s"))


def _with_finite_values(live: Live) -> Live:
    """Return the leader's values without those that aren't finite, which JSON can't hold."""
    return {**live, "values": {name: finite(value) for name, value in live["values"].items()}}


def _is_encrypted(cycle: CycleState, seats: Sequence[Mapping[str, Any]]) -> bool | None:
    begun = cycle.training or cycle.started
    return is_encrypted({} if begun is None else begun.settings, {seat["node"] for seat in seats})


def _stage(gangs: Sequence[CycleState]) -> int | None:
    """Return the stage in which a model that trains is cut over ranks; None: each holds all."""
    opened = (attempt.stage for gang in gangs for attempt in gang.open_attempts)
    return max(opened, default=0) or None


def _named(rows: Sequence[Mapping[str, Any]], names: Mapping[NodeId, str]) -> list[dict[str, Any]]:
    """Return what machines do with their names; one that is no member any more has none."""
    return [{**row, "name": names.get(NodeId(str(row["node"])))} for row in rows]


def _generators(cycle: CycleState, live: Live | None, current: int) -> list[dict[str, Any]]:
    """Return how fast each node generates, or has generated in this round."""
    if live is not None and live["phase"] == Phase.GENERATE:
        return list(live["gang"])
    if live is not None and live.get("ahead"):
        return list(live["ahead"])
    generated = cycle.completed_in(current, Phase.GENERATE).values()
    done = [fact for fact in generated if fact.elapsed_s]
    return [
        {
            "node": node,
            "tokens_per_s": _per_second(done, node, "tokens"),
            "accepted_per_min": 60 * _per_second(done, node, "samples"),
        }
        for node in sorted({fact.node for fact in done})
    ]


def _per_second(done: Sequence[WorkCompleted], node: str, count: str) -> float:
    own = [fact for fact in done if fact.node == node]
    elapsed_s = sum(fact.counts.get("writing_s") or fact.elapsed_s for fact in own)
    return sum(fact.counts.get(count, 0.0) for fact in own) / elapsed_s


def _step(cycle: CycleState, last: CheckpointCommitted | None, current: int) -> int:
    """Return the progress of a run whose leader reports none just now."""
    line = [*cycle.outer_branch(current).values()]
    if line and (last is None or last.round < current):
        return line[-1].first_step
    return 0 if last is None else last.step


def _begun(cycle: CycleState) -> Begun:
    if cycle.begun is None:
        raise Bug("a cycle is shown that was never started")
    return cycle.begun


def _state(cycle: CycleState, *, has_leader: bool) -> str:
    if cycle.failed is not None:
        return "failed"
    if cycle.wanted == RUNNING or cycle.rounds_committed >= cycle.rounds_wanted:
        return "finished" if cycle.has_nothing_to_do else "running" if has_leader else "waiting"
    return cycle.wanted


def _paused(cycle: CycleState, names: Mapping[NodeId, str]) -> dict[str, Any] | None:
    """Return who has paused it, when, and whether it waits for an answer."""
    command = cycle.paused
    if command is None:
        return None
    return {
        "node": command.node,
        "name": names.get(NodeId(command.node)) or short(command.node),
        "at": command.at,
        "reason": command.reason,
        "asks": command.reason.startswith(WAITING),
        "edit": command.edit,
    }


def _scored_bpb(cycle: CycleState) -> float | None:
    """Return the bits per byte of a training run's model on the text held out for it."""
    last = cycle.last_checkpoint(1)
    scored = cycle.completed.get((1, evaluation_id("" if last is None else last.artifact)))
    if cycle.training is None or scored is None:
        return None
    return finite(float(scored.summary["val_bpb"] or 0.0))


def _failure(cycle: CycleState) -> dict[str, str] | None:
    failed = cycle.failed
    return {"code": failed.code, "message": failed.message, "hint": failed.hint} if failed else None


def _lost_sources(cycle: CycleState) -> list[dict[str, Any]]:
    """Return the sources that couldn't be had in the newest round that was collected."""
    collected = [fact for fact in cycle.completed.values() if fact.phase == Phase.COLLECT]
    newest = max((fact.round for fact in collected), default=0)
    found = lost_among((fact.summary, fact.counts) for fact in collected if fact.round == newest)
    return [
        {
            "round": newest,
            "source": lost.source,
            "reason": lost.reason,
            "has_text": lost.has_text,
            "told": lost.text(),
        }
        for lost in found
    ]


def _newest_attempt(gangs: Sequence[CycleState]) -> dict[str, int | None]:
    """Return its number in the cluster, the one in its round, and the step it started from."""
    of_gangs = [each.attempts_opened.values() for each in gangs if each.attempts_opened]
    if not of_gangs:
        return {"epoch": 0, "attempt": 0, "attempt_in_round": 0, "resumed_from_step": None}
    opened = max(of_gangs, key=lambda each: _newest(each).attempt)
    last = _newest(opened)
    number = attempt_number(opened, last)
    return {
        "epoch": last.attempt,  # as programs knew it before
        "attempt": last.attempt,
        "attempt_in_round": number,
        "resumed_from_step": last.from_step,
    }


def _newest(opened: Iterable[AttemptOpened]) -> AttemptOpened:
    return max(opened, key=lambda each: each.attempt)


def _verdicts(cycle: CycleState) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = []
    for number, verdict in sorted(cycle.verdicts.items()):
        found = judged(cycle, number, verdict.candidate)
        numbers = {} if found is None else found.summary
        documents.append(
            {
                "round": number,
                "verdict": verdict.verdict,
                "candidate": verdict.candidate,
                "val_bpb": finite(verdict.val_bpb),
                "reason": verdict.reason,
                **{name: finite(numbers.get(name)) for name in VERDICT_NUMBERS},
            }
        )
    return documents


def _events(cycle: CycleState, islands: Islands) -> list[dict[str, Any]]:
    """Return what happened to gangs and lines, in words; each has a `seq` of its own."""
    events = _events_of(cycle)
    for state, started in islands:
        whose = f"island {number_of(started)}, "
        if cycle.started is not None:
            whose = f"round {started.parent_round}, {whose}"
        own = [*_events_of(state), *_end_of(state, cycle)]
        events += [event | {"text": whose + event["text"]} for event in own]
    return sorted(events, key=lambda event: event["seq"])


def _events_of(cycle: CycleState) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for attempt, opened in sorted(cycle.attempts_opened.items()):
        number = attempt_number(cycle.attempts_opened.values(), opened)
        start = _start_text(cycle, opened)
        engine = ", ".join(filter(None, [opened.engine, opened.engine_reason]))
        text = f"attempt {number}: {counted(len(opened.gang), 'rank')} ({engine}) {start}"
        events.append({"seq": ATTEMPT_SEQ * attempt, "text": text})
        closed = cycle.attempts_closed.get(attempt)
        if closed is not None and closed.reason != "finished":
            text = f"attempt {number} ended: {closed.reason}"
            events.append({"seq": ATTEMPT_SEQ * attempt + 1, "text": text})
    return [*events, *_starts_given(cycle), *_early_ends(cycle), *_suspensions(cycle)]


def _starts_given(cycle: CycleState) -> Iterator[dict[str, Any]]:
    """Return the score of weights that were given, behind the beginning of their first attempt."""
    checkpoints = (
        fact for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)
    )
    rounds: set[int] = set()
    for first in checkpoints:
        if first.round not in rounds and (text := began_with(first)):
            rounds.add(first.round)
            opened = [n for n, e in cycle.attempts_opened.items() if e.round == first.round]
            yield {"seq": ATTEMPT_SEQ * min(opened, default=first.attempt) + 2, "text": text}


def _early_ends(cycle: CycleState) -> Iterator[dict[str, Any]]:
    """Return which trainings ended early, or worse, behind the last words of their attempts."""
    checkpoints = (
        fact for fact in cycle.canonical_branch() if isinstance(fact, CheckpointCommitted)
    )
    for last in checkpoints:
        for before, text in ((3, worse_end(last)), (2, early_end(last))):
            if text:
                yield {"seq": ATTEMPT_SEQ * last.attempt + ATTEMPT_SEQ - before, "text": text}


_BITS = ("bits_per_byte_before", "bits_per_byte", "best_bits_per_byte")
"""Of weights that were given: before training, now, and at their best."""


def _held_out(
    learnt: Mapping[str, Any], last: CheckpointCommitted | None, current: int
) -> dict[str, Any]:
    """Return the loss on held-out text in this round, and after which step it was lowest."""
    is_of_this = last is not None and last.round == current
    known = held_out_readings(last.horizon) if last is not None and is_of_this else {}
    loss, step, *bits = (
        learnt.get(name, known.get(name)) for name in ("held_out", "best_step", *_BITS)
    )
    return {
        "held_out_loss": finite(loss),
        "best_step": None if step is None else int(step),
        **{name: finite(value) for name, value in zip(_BITS, bits, strict=True)},
        "ended_worse": last is not None
        and is_of_this
        and last.is_final
        and ends_worse(last.horizon),
    }


def _start_text(cycle: CycleState, opened: AttemptOpened) -> str:
    if opened.from_step:
        return f"from step {opened.from_step}"
    loaded = cycle.checkpoint(opened.from_checkpoint) if opened.follows else None
    trunk = "" if loaded is None else f", on the trunk of round {loaded.round}"
    return "from the start" if cycle.training else f"from the start of the round{trunk}"


def _end_of(island: CycleState, run: CycleState) -> Iterator[dict[str, Any]]:
    """Return why an island trains no more, behind its last attempt, where its run goes on."""
    if island.failed is not None and run.failed is None:
        seq = ATTEMPT_SEQ * max(island.attempts_opened, default=0) + ATTEMPT_SEQ - 1
        yield {"seq": seq, "text": f"failed: {island.failed.message}; {island.failed.hint}"}


def _suspensions(cycle: CycleState) -> Iterator[dict[str, Any]]:
    """Return the lines that were set aside and taken up again, behind the attempts before them."""
    said = 1
    for attempt, fact in cycle.parkings():
        said = min(said + fact.edit, ATTEMPT_SEQ - 1)
        name = branch_name(fact.cycle, fact.leaf)
        text = (
            f"line {name} is parked: {fact.reason or 'nobody in reach has its checkpoint'}"
            if fact.is_suspended
            else f"line {name} competes again: its checkpoint has turned up"
        )
        yield {"seq": ATTEMPT_SEQ * attempt + said, "text": text}


def gang_rows(seats: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a gang's ranks, each with its `share` of the batch, 0 to 1; None: a rate is unknown.

    All ranks of a gang take the same steps, so a rank's part of its gang's tokens per second is its
    part of each batch.
    """
    return [{**seat, "share": _share(seat, seats)} for seat in seats]


def _share(seat: Mapping[str, Any], seats: Sequence[Mapping[str, Any]]) -> float | None:
    """Return a rank's part; of islands, each is a gang of its own."""
    gang = [each for each in seats if each.get("island") == seat.get("island")]
    rates: list[float | None] = [each.get("tokens_per_s") for each in gang]
    known = [rate for rate in rates if rate is not None]
    own: float | None = seat.get("tokens_per_s")
    if own is None or len(known) < len(rates) or sum(known) <= 0:
        return None
    return round(own / sum(known), 4)
