"""A cycle before it starts, in at most twelve lines: what it reads, trains and takes.

Pure. Owns the words and their order. Doesn't know how anything of it was found out: the sources
were looked at by whoever asks, the training was foretold by the leader.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.data.holdout_outlook import HoldoutOutlook
from jupiterd.cycle.data.survey import Survey
from jupiterd.cycle.data.survey_lines import is_hopeless, reading_line, text_line
from jupiterd.cycle.rounds.plan_times import PhaseTimes, disk_bytes
from jupiterd.formats import duration, plain, size

MOST_LINES = 12
MORE = "jupiterctl cycle plan --verbose has the rest"


@dataclass(frozen=True)
class PlannedCycle:
    """What is known of a cycle before it starts."""

    title: str
    """What it is, and how large, for the first line."""
    rounds: int
    survey: Survey
    outlook: HoldoutOutlook
    times: PhaseTimes
    foretold: Mapping[str, Any]
    """What the leader says: expected, cost, layouts; empty where nobody who could train is here."""
    writer: str
    """Who writes synthetic text, in a sentence."""
    without_verdict: bool = False

    @property
    def training_tokens(self) -> float:
        """Return the tokens that are there to be trained on."""
        return self.survey.counts.tokens * (1 - self.outlook.held_out_share)


def plan_lines(planned: PlannedCycle) -> list[str]:
    """Return the lines."""
    return [planned.title, *(f"{label:<10}{told}" for label, told in _told(planned))]


def _told(planned: PlannedCycle) -> Iterator[tuple[str, str]]:
    survey, outlook = planned.survey, planned.outlook
    yield "reads", reading_line(survey)
    if survey.counted:
        yield "text", text_line(survey)
    yield "verdict", _verdict(planned)
    yield "training", _training(planned)
    expected: Mapping[str, Any] = planned.foretold.get("expected") or {}
    if expected:
        yield "model", _model(expected)
    yield "machines", _machines(planned.foretold)
    yield "time", _times(planned)
    if expected:
        yield "disk", _disk(planned, int(expected["parameters"]))
    yield "written", planned.writer
    if outlook.can_be_judged and outlook.help:
        yield "advice", outlook.help


def _verdict(planned: PlannedCycle) -> str:
    survey, outlook = planned.survey, planned.outlook
    if planned.without_verdict and not outlook.can_be_judged:
        return "none, as asked: too little text"
    if not survey.counted:
        return "known once the sources have been collected"
    if outlook.can_be_judged:
        return outlook.answer
    if not is_hopeless(survey, outlook):
        return f"not with what was counted: {outlook.answer}"
    return f"no: {outlook.answer}; {outlook.help}"


def _training(planned: PlannedCycle) -> str:
    cost: Mapping[str, Any] = planned.foretold.get("cost") or {}
    if not cost:
        return "no machine that could train is here, so nothing is foretold of it"
    first, later = cost["first"], cost.get("later")
    told = f"round 1: {_steps(first)}{_passes(planned, first)}"
    return f"{told}; each later round: {_steps(later)}" if later else told


def _steps(cost: Mapping[str, Any]) -> str:
    return f"{cost['steps']:,} steps, {cost['tokens'] / 1e6:,.2f} million tokens"


def _passes(planned: PlannedCycle, cost: Mapping[str, Any]) -> str:
    if not (there := planned.training_tokens):
        return ""
    return f", {cost['tokens'] / there:,.1f} passes over the text"


def _model(expected: Mapping[str, Any]) -> str:
    of = expected.get("device_memory_bytes")
    memory = f"{expected['memory_bytes_per_device'] / 1e9:.2f}"
    room = f"{memory} of {of / 1e9:.1f} GB" if of else f"{memory} GB"
    batch = f"{expected['batch_sequences']:,} sequences a step"
    return (
        f"{expected['parameters'] / 1e6:,.1f} million parameters, {expected['precision']}, "
        f"{expected['optimizer']}, {batch}, {room} of each device"
    )


def _machines(foretold: Mapping[str, Any]) -> str:
    layouts: Mapping[str, Any] = foretold.get("layouts") or {}
    if not layouts:
        return "none that could train is here"
    speed = (foretold.get("expected") or {}).get("tokens_per_s")
    rate = f"{speed:,.0f} tokens/s" if speed else "not measured yet with this model"
    return f"{plain(layouts['unasked'])}, {rate}"


def _times(planned: PlannedCycle) -> str:
    times = planned.times
    most = "up to " if times.is_polite else ""
    parts = [f"collect {most}{_about(times.collect_s)}", f"filter {_about(times.filter_s)}"]
    if times.generate_s:
        parts.append(f"generate {_about(times.generate_s)}")
    parts += [f"train {_about(times.train_s)}", f"judge {_about(times.judge_s)}"]
    whole = times.all_rounds_s(planned.rounds)
    rounds = "round" if planned.rounds == 1 else f"{planned.rounds} rounds"
    return f"{', '.join(parts)}; {rounds}: {most}{_about(whole)}"


def _about(seconds: float | None) -> str:
    return "not known yet" if seconds is None else f"~{duration(max(seconds, 1.0))}"


def _disk(planned: PlannedCycle, parameters: int) -> str:
    needed = disk_bytes(planned.survey, parameters, planned.rounds)
    return f"about {size(needed)} on each machine that keeps the cycle"
