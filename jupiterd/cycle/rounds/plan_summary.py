"""A cycle before it starts, in at most twelve lines: what it reads, trains and takes.

Pure. Owns the words and their order. Doesn't know how anything of it was found out: the sources
were looked at by whoever asks, the training was foretold by the leader.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.domain.survey_lines import is_hopeless, reading_line, text_line
from jupiterd.cycle.holdout.verdict_forecast import VerdictForecast
from jupiterd.cycle.rounds.plan_times import PhaseTimes, disk_bytes, least_of
from jupiterd.cycle.training.step_budget import worthless_words
from jupiterd.cycle.training.tuning import why_high
from jupiterd.formats import counted, counted_tokens, duration, plain, size

MOST_LINES = 12
MORE = "jupiterctl cycle plan --verbose has the rest"

OF_THE_TEXT = 0.9
"""So many passes and more are as many as the text is worth; fewer steps are the size's own."""

BASE_BYTES = 4
"""Of a parameter of the model that adapters are trained beside, at the most."""

WORTH_OF_A_GUESS = "good to a factor of three on an idle machine"
"""Two quiet cores trained 12,480 tokens a second where 5,086 were guessed, busy ones 300."""


@dataclass(frozen=True)
class PlannedCycle:
    """What is known of a cycle before it starts."""

    title: str
    """What it is, and how large, for the first line."""
    rounds: int
    survey: Survey
    forecast: VerdictForecast
    times: PhaseTimes
    predicted: Mapping[str, Any]
    """What the leader says: expected, cost, layouts; empty where nobody who could train is here."""
    writer: str
    """Who writes synthetic text, in a sentence."""
    without_verdict: bool = False
    size: str = ""
    """As people asked for it; empty where it is a model's of their own."""
    max_steps: int = 0
    """Of each round, as people asked for it; 0: they didn't."""
    has_fixed_steps: bool = False
    """The domain says how many each round takes, whatever text there is."""

    @property
    def training_tokens(self) -> float:
        """Return the tokens that are there to be trained on."""
        return self.survey.counts.tokens * (1 - self.forecast.held_out_share)


def plan_lines(planned: PlannedCycle) -> list[str]:
    """Return the lines."""
    return [planned.title, *(f"{label:<10}{text}" for label, text in _labelled_lines(planned))]


def _labelled_lines(planned: PlannedCycle) -> Iterator[tuple[str, str]]:
    survey = planned.survey
    yield "reads", reading_line(survey)
    if survey.counted:
        yield "text", text_line(survey)
    yield "verdict", _verdict(planned)
    yield "training", _training(planned)
    expected: Mapping[str, Any] = planned.predicted.get("expected") or {}
    if expected:
        yield "model", _model(expected)
    yield "machines", _machines(planned.predicted)
    yield "time", _times(planned)
    if expected:
        yield "disk", _disk(planned, expected)
    yield "written", planned.writer
    if advice := _advice(planned):
        yield "advice", advice


def _advice(planned: PlannedCycle) -> str:
    """Return what had better be otherwise; empty: nothing."""
    size: Mapping[str, Any] = planned.predicted.get("size") or {}
    lines: list[str] = []
    if size and planned.size and size["size"] != planned.size:
        lines.append(f"--size {size['size']} suits text and machines: {plain(size['reason'])}")
    if planned.forecast.can_be_judged and planned.forecast.help:
        lines.append(planned.forecast.help)
    return "; ".join(lines)


def _verdict(planned: PlannedCycle) -> str:
    survey, forecast = planned.survey, planned.forecast
    if planned.without_verdict and not forecast.can_be_judged:
        return "none, as asked: too little text"
    if not survey.counted:
        return "known once the sources have been collected"
    if forecast.can_be_judged:
        return forecast.answer
    if not is_hopeless(survey, forecast):
        return f"not with what was counted: {forecast.answer}"
    return f"no: {forecast.answer}; {forecast.help}"


def _training(planned: PlannedCycle) -> str:
    cost: Mapping[str, Any] = planned.predicted.get("cost") or {}
    if not cost:
        return "no machine that could train is here, so nothing is foretold of it"
    first, later = cost["first"], cost.get("later")
    text = f"round 1: {_steps(planned, least_of(cost))}{_passes(planned, least_of(cost))}"
    if least_of(cost)["steps"] < first["steps"]:
        passes = _passes(planned, first).replace(" over the text", "")
        most_steps = f"{_roughly(planned, first)}{counted(first['steps'], 'step')}"
        text += f" (up to {most_steps}{passes}, while held-out loss falls)"
    if later:
        text += f"; each later round: {_steps(planned, least_of(cost, 'later'))}"
    if planned.training_tokens:
        text += worthless_words(first["tokens"] / planned.training_tokens)
    text += _rate(planned.predicted.get("expected") or {})
    most = planned.max_steps
    return f"{text}; no more than {counted(most, 'step')} a round, as asked" if most else text


def _rate(expected: Mapping[str, Any]) -> str:
    """Return the learning rate that weights are tuned with; nothing of weights that are drawn."""
    if not expected.get("is_tuning"):
        return ""
    rate, has_adapter = float(expected["learning_rate"]), bool(expected.get("adapter"))
    high = f", which {why}" if (why := why_high(rate, has_adapter=has_adapter)) else ""
    return f"; tuned with a learning rate of {rate:g}{high}"


def _steps(planned: PlannedCycle, cost: Mapping[str, Any]) -> str:
    about = _roughly(planned, cost)
    return f"{about}{counted(cost['steps'], 'step')}, {counted_tokens(cost['tokens'])}"


def _roughly(planned: PlannedCycle, cost: Mapping[str, Any]) -> str:
    """Return what is said before steps that follow from text whose tokens nobody has counted."""
    is_fixed = planned.has_fixed_steps or cost["steps"] == planned.max_steps
    is_of_text = cost["tokens"] >= OF_THE_TEXT * planned.training_tokens > 0
    return "about " if is_of_text and not is_fixed else ""


def _passes(planned: PlannedCycle, cost: Mapping[str, Any]) -> str:
    if not (there := planned.training_tokens):
        return ""
    passes = cost["tokens"] / there
    text = f"{passes:,.1f} passes" if passes >= 0.1 else "under a tenth of a pass"
    return f", {text} over the text"


def _model(expected: Mapping[str, Any]) -> str:
    of = expected.get("device_memory_bytes")
    memory = f"{expected['memory_bytes_per_device'] / 1e9:.2f}"
    room = f"{memory} of {of / 1e9:.1f} GB" if of else f"{memory} GB"
    least = expected.get("least_batch_sequences")  # where nobody has counted the text
    about = f"{least:,} to " if least else ""
    batch = f"{about}{expected['batch_sequences']:,} sequences a step"
    return (
        f"{expected['parameters'] / 1e6:,.1f} million parameters{_adapter(expected)}, "
        f"{expected['precision']}, "
        f"{expected['optimizer']}, {batch}, {_held(expected) or f'{room} of each device'}"
    )


def _held(expected: Mapping[str, Any]) -> str:
    """Return who holds what of a model that is cut, and what a death costs; empty: it isn't."""
    if not (partition := expected.get("partition")):
        return ""
    held = ", ".join(map(_part, partition["members"]))
    most = duration(partition["lost_s"])
    lost = f"a machine that is lost costs about {most} at the most"
    return f"cut in stage {partition['stage']} over {held}; {lost}"


def _part(member: Mapping[str, Any]) -> str:
    of = member["memory_bytes"]
    room = f"{member['bytes'] / 1e9:.1f}{f' of {of / 1e9:.1f}' if of else ''} GB"
    return f"{plain(member['name'])} {100 * member['part']:.0f} % ({room})"


def _adapter(expected: Mapping[str, Any]) -> str:
    """Return what is trained beside them, and how much that is; empty: they are."""
    if not (adapter := expected.get("adapter")):
        return ""
    trained = int(adapter["parameters"])
    share = f"{trained / expected['parameters']:.2%}"
    given = " that was given" if adapter.get("is_given") else ""
    usual = adapter.get("usual_of")
    says = f"; as lora in jupiter.yaml of {plain(usual)} says, --lora off: all weights"
    why = says if usual else ""
    options = f"{share}; {adapter['options']}{why}"
    return f" stay as they are beside an adapter{given} of {trained:,} ({options})"


def _machines(predicted: Mapping[str, Any]) -> str:
    layouts: Mapping[str, Any] = predicted.get("layouts") or {}
    if not layouts:
        return "none that could train is here"
    expected: Mapping[str, Any] = predicted.get("expected") or {}
    speed, guess = expected.get("tokens_per_s"), expected.get("guessed_tokens_per_s")
    rate = f"{speed:,.0f} tokens/s" if speed else "not measured yet with this model"
    if guess and not speed:
        rate += f"; times are a guess of {guess:,.0f} tokens/s, {WORTH_OF_A_GUESS}"
    return f"{plain(layouts['unasked'])}, {rate}"


def _times(planned: PlannedCycle) -> str:
    times = planned.times
    parts = [f"collect {_about(times.collect_s, is_most=times.is_polite)}"]
    parts.append(f"filter {_about(times.filter_s)}")
    if times.generate_s != 0:
        parts.append(f"generate {_about(times.generate_s)}")
    parts += [f"train {_about(times.train_s)}", f"judge {_about(times.judge_s)}"]
    whole = times.all_rounds_s(planned.rounds)
    rounds = "round" if planned.rounds == 1 else f"{planned.rounds} rounds"
    beside = " without generating" if times.generate_s is None and whole else ""
    all_rounds = f"{rounds}: {_about(whole, is_most=times.is_polite)}{beside}"
    idle = ", on idle machines" if whole else ""
    return f"{', '.join(parts)}; {all_rounds}{idle}"


def _about(seconds: float | None, *, is_most: bool = False) -> str:
    if seconds is None:
        return "not known yet"
    return f"{'up to ' * is_most}~{duration(max(seconds, 1.0))}"


def _disk(planned: PlannedCycle, expected: Mapping[str, Any]) -> str:
    parameters, vocab_size = int(expected["parameters"]), int(expected.get("vocab_size", 0))
    adapter: Mapping[str, Any] = expected.get("adapter") or {}
    trained = int(adapter.get("parameters") or parameters)
    needed = disk_bytes(planned.survey, trained, planned.rounds, vocab_size)
    needed += BASE_BYTES * parameters if adapter else 0
    return f"about {size(needed)} on each machine that keeps the cycle"
