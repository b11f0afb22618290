"""How long the phases of a round may take, and what a cycle leaves on a disk.

Owns that arithmetic, which is rough on purpose: it tells seconds from hours. Doesn't know machines:
speeds come in, where they are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.data.token_width import token_bytes
from jupiterd.cycle.domain.survey import Survey
from jupiterd.cycle.holdout.verdict_check import BYTES_OF_TOKEN
from jupiterd.cycle.holdout.verdict_forecast import VerdictForecast

START_S = 3.0
"""Of the worker that does a phase."""
FORWARD_SHARE = 1 / 3
"""Of the time of a training step a token takes that is only scored."""
STUDENTS = 2
"""Models that are scored on the held-out text: the candidate, and what it is compared with."""

GENERAL_TEXT_BYTES = 143_000
"""Of the text that ships with Jupiter, which is scored beside where a model was brought: whether it
forgets."""

TEXT_COPIES = 3
"""Documents, cleaned ones and kept ones; packed to about a third each."""
PACKED_SHARE = 1 / 3
BYTES_OF_PARAMETER = 12
"""Of a checkpoint: weights and two moments in fp32."""
ROUNDS_RETAINED = 2
CHECKPOINTS_OF_ROUND = 2


@dataclass(frozen=True)
class PhaseTimes:
    """Of round 1, in seconds; None where nobody knows."""

    collect_s: float | None
    filter_s: float | None
    generate_s: float | None
    """0: nothing is generated in it; None: nobody knows how fast."""
    train_s: float | None
    judge_s: float | None
    train_all_s: float | None
    """Of all rounds together."""
    is_polite: bool = False
    """Pages of the web are fetched, which takes so long at the most."""

    def all_rounds_s(self, rounds: int) -> float | None:
        """Return the time of the whole cycle; later rounds collect only what has changed.

        Generating isn't in it where nobody knows how long it takes.
        """
        each = (self.filter_s, self.judge_s)
        if self.collect_s is None or self.train_all_s is None or None in each:
            return None
        of_each = sum(part or 0.0 for part in (*each, self.generate_s))
        return self.collect_s + rounds * of_each + self.train_all_s


@dataclass(frozen=True)
class Seen:
    """What a look at the sources has shown."""

    survey: Survey
    forecast: VerdictForecast
    far_s: float = 0.0
    """The longest time that politeness towards web sites takes; 0: there are none."""


@dataclass(frozen=True)
class Writing:
    """What is generated in a round, at the most."""

    samples: int
    tokens: int


def phase_times(
    seen: Seen, predicted: Mapping[str, Any], rounds: int, writing: Writing | None = None
) -> PhaseTimes:
    """Return how long each phase may take, of training the steps that are taken in any case.

    Args:
        seen: of the sources.
        predicted: what the leader says.
        rounds: of the cycle.
        writing: what is generated in round 1; None: nothing.
    """
    survey, forecast, far_s = seen.survey, seen.forecast, seen.far_s
    expected: Mapping[str, Any] = predicted.get("expected") or {}
    rate = expected.get("tokens_per_s") or expected.get("guessed_tokens_per_s") or 0.0
    cost: Mapping[str, Any] = predicted.get("cost") or {}
    share = _share_read(survey)
    scored = forecast.gate_documents + forecast.dev_documents
    general = GENERAL_TEXT_BYTES / BYTES_OF_TOKEN if expected.get("is_tuning") else 0.0
    tokens = STUDENTS * (scored * _tokens_of_document(survey) + general)
    return PhaseTimes(
        collect_s=START_S + survey.reading_s / share + far_s,
        filter_s=START_S + survey.judging_s / share,
        generate_s=_writing_s(writing, predicted.get("writing") or {}),
        train_s=_training_s(least_of(cost)["tokens"], rate),
        judge_s=START_S * STUDENTS + tokens * FORWARD_SHARE / rate if rate else None,
        train_all_s=_training_s(_all_tokens(cost, rounds), rate),
        is_polite=far_s > 0,
    )


def disk_bytes(survey: Survey, parameters: int, rounds: int, vocab_size: int = 0) -> int:
    """Return about what a cycle leaves on a disk that has all of it.

    vocab_size: of the model; 0: not known, and none of the largest
    """
    of_shards = token_bytes(vocab_size) / BYTES_OF_TOKEN
    text = survey.bytes * (TEXT_COPIES * PACKED_SHARE + of_shards)
    checkpoints = CHECKPOINTS_OF_ROUND * BYTES_OF_PARAMETER * parameters
    return round(min(rounds, ROUNDS_RETAINED) * (text + checkpoints))


def least_of(cost: Mapping[str, Any], which: str = "first") -> dict[str, float]:
    """Return steps and tokens that a round takes whatever the loss does; 0: not known.

    which: `first` or `later`
    """
    of: Mapping[str, Any] = cost.get(which) or {}
    if not of:
        return {"steps": 0, "tokens": 0}
    least = of.get("least_steps") or of["steps"]
    return {"steps": least, "tokens": of["tokens"] * least / of["steps"]}


def _all_tokens(cost: Mapping[str, Any], rounds: int) -> float:
    return least_of(cost)["tokens"] + (rounds - 1) * least_of(cost, "later")["tokens"]


def _training_s(tokens: float, rate: float) -> float | None:
    return START_S + tokens / rate if tokens and rate else None


def _writing_s(writing: Writing | None, before: Mapping[str, Any]) -> float | None:
    """Return how long a round's text takes; None: its writer hasn't written yet.

    before: what it did in other cycles
    """
    if writing is None:
        return 0.0
    if not before:
        return None
    tokens = min(writing.tokens, writing.samples * before["tokens_each"])
    return START_S + tokens / before["tokens_per_s"]


def _share_read(survey: Survey) -> float:
    """Return how much of what was found was read; 1 where nothing was counted."""
    read = sum(source.read for source in survey.counted)
    found = sum(source.found for source in survey.counted)
    return read / found if read else 1.0


def _tokens_of_document(survey: Survey) -> float:
    return survey.counts.tokens / survey.documents if survey.documents else 0.0
