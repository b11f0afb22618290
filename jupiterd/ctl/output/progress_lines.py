"""Progress lines of a running cycle, training run or data set.

Pure: turns documents and the time into lines. Owns which changes get a line, and when. Doesn't know
where the documents come from, or what a terminal is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jupiterd.ctl.output.pause_lines import pause_line
from jupiterd.cycle.base.snapshot_pace import EVERY_STEPS
from jupiterd.cycle.gate.shown_reason import shown_reason
from jupiterd.errors import TooLittleTextError
from jupiterd.formats import duration, plain, rate
from jupiterd.ids import short
from jupiterd.protocol.preparing_stage import preparing_words

RUNNING_INTERVAL_S = 5.0
"""Seconds between two lines of a running phase."""

STANDING_INTERVAL_S = 60.0
"""Seconds between two lines of a running phase without new progress."""

ENDED_STATES = frozenset({"finished", "failed", "stopped"})
"""The final states of a cycle."""

GOING_STATES = frozenset({"running", "waiting"})
"""States of a cycle in which a leader, once there is one, reports what runs."""

PREPARING = "preparing"
"""The text of a phase that has done nothing yet and knows no total; shown once."""

NONE = "none"

NO_VERDICT = "-"
"""The verdict line of a training run without a cycle, which nothing judges."""
WORSE = "WORSE"
"""The verdict line of a training run whose last weights are worse than the given ones."""

CYCLE = "cycle"
TITLES = {CYCLE: "cycle", "train": "training", "data": "data set"}
"""Kind of a document -> its name in messages."""

Cycle = Mapping[str, Any]
Row = Mapping[str, Any]
PhaseKey = tuple[int, str]

_NAMED_VALUES = {
    "tokens_per_s": "{:,.0f} tokens/s",
    "loss": "loss {:.3f}",
    "held_out": "held out {:.3f}",
    "best_step": "best at step {:,.0f}",
    "bits_per_byte": "{:.4f} bits per byte",
    "bits_per_byte_before": "{:.4f} bits per byte before training",
}
"""Reading -> its format. Other readings are shown with their names, except _HIDDEN_VALUES."""

_ALARM = (
    "ALARM: it saves {:.4f} bits per byte less where nobody ever looked: the held-out text seems "
    "over-fitted (jupiterctl cycle explain)"
)

_PREDICTED = "predicted_tokens_per_s"
_HIDDEN_VALUES = frozenset(
    {
        "tokens",
        "step",
        _PREDICTED,
        "flops_per_token",
        "peak_flops_per_s",
        "rank_tokens_per_s",
        EVERY_STEPS,
        "rank_sequences_per_s",
        "held_out_step",
        "best_held_out",
        "best_bits_per_byte",
        "risen",
    }
)


@dataclass(frozen=True)
class Line:
    """One line of progress."""

    text: str
    is_passing: bool = False
    """Whether the next line may replace it on a terminal, as for a running phase."""


@dataclass(frozen=True)
class PrintedProgress:
    """The progress that has been printed so far."""

    started: frozenset[PhaseKey] = frozenset()
    ended: frozenset[PhaseKey] = frozenset()
    verdicts: frozenset[int] = frozenset()
    events: frozenset[int] = frozenset()
    """Numbers of printed events, as a set: events of two islands may arrive out of order."""
    is_waiting: bool = False
    paused_at: str = ""
    running_s: float = float("-inf")
    """Time of the last line of a running phase, in seconds."""
    preparing: PhaseKey | None = None
    """The phase whose last line said only that it prepares."""
    counted: tuple[PhaseKey, int] | None = None
    """The running phase of the last line, and the amount that was done."""


def next_lines(
    shown: PrintedProgress, cycle: Cycle, now_s: float
) -> tuple[PrintedProgress, list[Line]]:
    """Return the progress after printing, and the lines that are new since `shown`.

    Args:
        shown: what was printed before.
        cycle: the daemon's document of the cycle.
        now_s: seconds of a monotonic clock.
    """
    lines: list[Line] = []
    shown = _waiting(shown, cycle, lines)
    verdicts = {row["round"]: row for row in cycle.get("verdicts", [])}
    phases: Sequence[Row] = cycle.get("phases", [])
    unsure = _unsure(cycle, phases, verdicts)
    for round_number in sorted({row["round"] for row in phases} | set(verdicts)):
        for row in phases:
            if row["round"] == round_number and row is not unsure:
                shown = _phase(shown, row, now_s, lines, _head(cycle, row))
        if round_number in verdicts and round_number not in shown.verdicts:
            lines += map(Line, verdict_lines(verdicts[round_number]))
            shown = replace(shown, verdicts=shown.verdicts | {round_number})
    return _events(shown, cycle, lines), lines


def final_lines(cycle: Cycle) -> list[str]:
    """Return the last lines of a run; scripts rely on the keys of the last three."""
    verdicts = cycle.get("verdicts") or [{}]
    last = verdicts[-1]
    judged = last.get("verdict") or (NONE if is_cycle(cycle) else _tuning_end(cycle))
    return [
        *before_and_after(cycle),
        *next_commands(cycle),
        f"verdict: {judged}",
        f"val_bpb: {_bpb(last.get('val_bpb', cycle.get('val_bpb')))}",
        f"model: {cycle.get('model') or _no_model(cycle)}",
    ]


def _no_model(run: Cycle) -> str:
    """Return the text in place of a model id; a run that was stopped or failed has checkpoints."""
    state = run.get("state")
    if is_cycle(run) or not (state == "stopped" or (state == "failed" and run.get("step"))):
        return NONE
    return f"{NONE} yet; its checkpoints: jupiterctl model list"


COIN_BPB = 8.0
"""Bits per byte of a model that knows nothing: eight random bits."""

_MEASURED_SO = " (as training measures it, by sequences; val_bpb: all held-out text, once trained)"
"""Appended if val_bpb, another figure about held-out text, follows."""


def next_commands(run: Cycle) -> list[str]:
    """Return the commands to use after a run has ended; empty if it has made no model.

    They name the run by its id, because its name means the newest run with that name.
    """
    if not run.get("model"):
        return []
    called, verdicts = short(str(run["id"])), run.get("verdicts") or ()
    model = f"{called}/{verdicts[-1]['round']}" if verdicts else called
    explain = [f"jupiterctl cycle explain {called}"] if verdicts else []
    use = [f"jupiterctl model chat {model}", f"jupiterctl model export {model} --to FOLDER"]
    return [f"next: {', '.join([*explain, *use])}"]


def before_and_after(run: Cycle) -> list[str]:
    """Return the scores before and after training given weights; for others, see `_ran_away`."""
    before, after = (run.get(name) for name in ("bits_per_byte_before", "best_bits_per_byte"))
    if before is None or after is None:
        return _ran_away(run)
    how = "" if run.get("val_bpb") is None else _MEASURED_SO
    lines = [f"held out: {after:.4f} bits per byte, {before:.4f} before training{how}"]
    if not run.get("ended_worse"):
        return lines
    end, step = run.get("bits_per_byte"), run.get("best_step")
    model = f"that of step {step:,}" if step else "the one that you gave"
    return [*lines, f"it ended worse than it began, at {_bpb(end)}: the model is {model}"]


def _ran_away(run: Cycle) -> list[str]:
    """Return a warning if a model is worse than random; else nothing."""
    score = run.get("val_bpb")
    if not isinstance(score, int | float) or score < COIN_BPB:
        return []
    reason = f"its val_bpb of {_bpb(score)} is worse than a coin for each bit ({COIN_BPB:g})"
    return [f"warning: {reason}: its loss ran away; start it again with a lower --lr"]


def _tuning_end(run: Cycle) -> str:
    """Return the verdict text of a training without a cycle; only given weights can get worse."""
    return WORSE if run.get("ended_worse") else NO_VERDICT


def failure_lines(cycle: Cycle) -> list[str]:
    """Return why a run failed, and what to do; empty if it hasn't failed."""
    failure: Row = cycle.get("failure") or {}
    if cycle.get("state") != "failed" or not failure:
        return []
    lines = [f"failed: {plain(failure.get('message'))}"]
    lines += [f"hint: {plain(failure['hint'])}"] if failure.get("hint") else []
    return [*lines, *([_goes_on(cycle, str(failure.get("code")))] if is_cycle(cycle) else [])]


def _goes_on(cycle: Cycle, code: str) -> str:
    """Return the command that resumes a failed cycle; after too little text, it collects again."""
    command = f"jupiterctl cycle resume {short(str(cycle.get('id', '')))}"
    if code == TooLittleTextError.code:
        return f"once there is more text it is read again: {command} --redo collect"
    return f"then it goes on from where it is: {command}"


def is_cycle(document: Cycle) -> bool:
    """Return whether a document is about a cycle, which has rounds and verdicts."""
    return document.get("kind", CYCLE) == CYCLE


def title(document: Cycle) -> str:
    """Return the name of a document's kind, such as `cycle`."""
    return TITLES.get(str(document.get("kind", CYCLE)), CYCLE)


def verdict_lines(verdict: Row) -> list[str]:
    """Return the lines of a round's verdict: the numbers, the reason, then warnings."""
    compared = [
        f"{label} {_bpb(verdict[key])}"
        for key, label in (
            ("incumbent_bpb", "incumbent"),
            ("base_bpb", "the model that was brought"),
            ("generator_bpb", "generator"),
            ("byte_bpb", "order-2 byte model"),
            ("unigram_bpb", "unigram"),
        )
        if verdict.get(key) is not None
        and (key != "generator_bpb" or verdict[key] != verdict.get("incumbent_bpb"))
    ]
    others = f" ({', '.join(compared)})" if compared else ""
    head = f"round {verdict['round']} verdict "
    lines = [f"{head}  {verdict['verdict']}: {_bpb(verdict.get('val_bpb'))} bits per byte{others}"]
    if reason := verdict.get("reason"):
        lines.append(f"{head}  {plain(shown_reason(str(reason)))}")
    if (grown := verdict.get("forgetting")) is not None:
        versus = "compared with the model that was brought"
        lines.append(f"{head}  general text takes {grown:+.1%} bits per byte {versus}")
    if verdict.get("vault_alarm") and verdict.get("vault_gap_bpb") is not None:
        lines.append(f"{head}  {_ALARM.format(verdict['vault_gap_bpb'])}")
    return lines


def cycle_summary(cycle: Cycle) -> str:
    """Return a line about a cycle's state."""
    parts = [
        f"{plain(cycle.get('domain'))} ({short(cycle.get('id', ''))}): {plain(cycle.get('state'))}"
    ]
    if cycle.get("state") not in ENDED_STATES:
        rounds = f" of {cycle['rounds']}" if cycle.get("rounds") else ""
        if is_cycle(cycle):
            parts.append(f"round {cycle.get('round')}{rounds}")
        running = [row for row in cycle.get("phases", []) if row["state"] == "running"]
        parts += [f"{row['phase']} {_amount(row)}" for row in running]
        parts += [plain(row["detail"]) for row in running if row.get("detail")]
    if verdicts := cycle.get("verdicts"):
        last = verdicts[-1]
        is_older = (
            last.get("round") != cycle.get("round") and cycle.get("state") not in ENDED_STATES
        )
        of_round = f"round {last['round']} was " if is_older else ""
        parts.append(f"{of_round}{last['verdict']} at {_bpb(last.get('val_bpb'))} bits per byte")
    return ", ".join(parts)


def _waiting(shown: PrintedProgress, cycle: Cycle, lines: list[Line]) -> PrintedProgress:
    is_waiting = cycle.get("state") == "waiting"
    if is_waiting and not shown.is_waiting:
        text = f"nobody leads just now; the {title(cycle)} goes on after the election"
        lines.append(Line(f"waiting: {text}"))
    paused: Row = cycle.get("paused") or {}
    paused_at = str(paused.get("at", ""))
    if paused and paused_at != shown.paused_at:
        lines.append(Line(pause_line(cycle)))
    return replace(shown, is_waiting=is_waiting, paused_at=paused_at)


def _unsure(cycle: Cycle, phases: Sequence[Row], verdicts: Mapping[int, Row]) -> Row | None:
    """Return the phase that may look done only because a new leader hasn't reported yet.

    A training phase that looks done is done, because its last step is recorded.
    """
    begun = [row for row in phases if row["state"] != "waiting"]
    if cycle.get("state") not in GOING_STATES or not begun:
        return None
    last = begun[-1]
    is_over = last["state"] != "done" or last["phase"] == "train" or last["round"] in verdicts
    return None if is_over or any(row["state"] == "running" for row in begun) else last


def _events(shown: PrintedProgress, cycle: Cycle, lines: list[Line]) -> PrintedProgress:
    for event in cycle.get("events", []):
        if event["seq"] not in shown.events:
            lines.append(Line(plain(event["text"])))
            shown = replace(shown, events=shown.events | {event["seq"]})
    return shown


def _phase(
    shown: PrintedProgress, row: Row, now_s: float, lines: list[Line], head: str
) -> PrintedProgress:
    key: PhaseKey = (row["round"], row["phase"])
    if row["state"] in {"done", "skipped", "failed"} and key not in shown.ended:
        lines.append(Line(f"{head}  {_ended(row)}"))
        return replace(shown, ended=shown.ended | {key}, started=shown.started | {key})
    if row["state"] != "running":
        return shown
    if key not in shown.started:
        lines.append(Line(f"{head}  started"))
        return replace(shown, started=shown.started | {key}, running_s=now_s)
    text = _running(row)
    preparing = key if text == PREPARING else None
    is_known = preparing is not None and preparing == shown.preparing
    counted = key, row["done"]
    stands = counted == shown.counted and not row.get("preparing")
    interval_s = STANDING_INTERVAL_S if stands else RUNNING_INTERVAL_S
    if now_s - shown.running_s < interval_s or is_known:
        return shown
    lines.append(Line(f"{head}  {text}", is_passing=True))
    return replace(shown, running_s=now_s, preparing=preparing, counted=counted)


def _head(cycle: Cycle, row: Row) -> str:
    phase = f"{row['phase']:<8}"
    return f"round {row['round']} {phase}" if is_cycle(cycle) else phase


def _running(row: Row) -> str:
    parts = [_amount(row)]
    if row.get("rate"):
        parts.append(rate(row["rate"]))
    parts += shown_values(row)
    if row.get("eta_s") is not None:
        parts.append(f"{duration(row['eta_s'])} left")
    elif row.get("stalled_s"):
        parts.append(f"nothing new for {duration(row['stalled_s'])}")
    if row.get("detail"):
        parts.append(plain(row["detail"]))
    return ", ".join(parts)


def _ended(row: Row) -> str:
    if row["state"] == "skipped":
        return f"skipped: {plain(row.get('detail'))}"
    unit = str(row["unit"])
    counts = f"{row['done']:,} {unit.removesuffix('s') if row['done'] == 1 else unit}"
    parts = [f"{row['state']}: {counts}".removesuffix(": 0 ")]
    if row.get("elapsed_s") is not None:
        parts.append(f"in {duration(row['elapsed_s'])}")
    if row.get("rate"):
        parts.append(f"({rate(row['rate'])})")
    detail = f", {plain(row['detail'])}" if row.get("detail") else ""
    return " ".join(parts) + detail


def _amount(row: Row) -> str:
    if row.get("preparing"):
        return preparing_words(row["preparing"])
    if not row["done"] and not row.get("total"):
        return PREPARING
    of_total = f" of {row['total']:,}" if row.get("total") else ""
    return f"{row['done']:,}{of_total} {row['unit']}".rstrip()


def shown_values(row: Row) -> list[str]:
    """Return texts of the readings of a running phase, such as its loss."""
    values: Mapping[str, float] = row.get("values") or {}
    names = [name for name in values if name not in _HIDDEN_VALUES]
    return [_value(name, values[name], values.get(_PREDICTED)) for name in names]


def _value(name: str, value: float, predicted: float | None) -> str:
    if name not in _NAMED_VALUES:
        return f"{name.replace('_', ' ')} {value:.4g}"
    prediction = f" ({predicted:,.0f} predicted)" if predicted and name == "tokens_per_s" else ""
    return _NAMED_VALUES[name].format(value) + prediction


def _bpb(value: float | None) -> str:
    return NONE if value is None else f"{value:.4f}"
