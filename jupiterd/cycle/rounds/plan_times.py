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
"""Seconds that a phase's worker takes to start."""
FORWARD_SHARE = 1 / 3
"""The time to score a token, as a share of the time to train on it."""
STUDENTS = 2
"""Models scored on held-out text: the candidate, and the one that it is compared with."""

GENERAL_TEXT_BYTES = 143_000
"""Of the text that ships with Jupiter, which is scored beside where a model was brought: whether it
forgets."""

TEXT_COPIES = 3
"""Copies of the text: documents, cleaned and retained ones; each packed to about a third."""
PACKED_SHARE = 1 / 3
BYTES_OF_PARAMETER = 12
"""Bytes of a checkpoint for each parameter: weights and two moments in fp32."""
ROUNDS_RETAINED = 2
CHECKPOINTS_OF_ROUND = 2


@dataclass(frozen=True)
class PhaseTimes:
    """Seconds of each phase of round 1; None: unknown."""

    collect_s: float | None
    filter_s: float | None
    generate_s: float | None
    """0: the round generates nothing; None: the speed is unknown."""
    train_s: float | None
    judge_s: float | None
    train_all_s: float | None
    """Training of all rounds together."""
    is_polite: bool = False
    """Web pages are fetched, and the pause between requests makes this an upper bound."""

    def all_rounds_s(self, rounds: int) -> float | None:
        """Return the seconds of the whole cycle; later rounds collect only what has changed.

        Generation isn't included where its speed is unknown.
        """
        each = (self.filter_s, self.judge_s)
        if self.collect_s is None or self.train_all_s is None or None in each:
            return None
        of_each = sum(part or 0.0 for part in (*each, self.generate_s))
        return self.collect_s + rounds * of_each + self.train_all_s


@dataclass(frozen=True)
class Seen:
    """The result of a survey of the sources."""

    survey: Survey
    forecast: VerdictForecast
    far_s: float = 0.0
    """Seconds at most that pauses between requests to web sites take; 0: no web sites."""


@dataclass(frozen=True)
class Writing:
    """The upper bound of what a round generates."""

    samples: int
    tokens: int


def phase_times(
    seen: Seen, predicted: Mapping[str, Any], rounds: int, writing: Writing | None = None
) -> PhaseTimes:
    """Return how long each phase may take; training counts the steps that are certain.

    Args:
        seen: the survey of the sources.
        predicted: the leader's prediction of speeds.
        rounds: the number of rounds of the cycle.
        writing: what round 1 generates; None: nothing.
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
    """Return the estimated bytes of a cycle on a disk that stores all of it.

    vocab_size: of the model; 0: not known, and none of the largest
    """
    of_shards = token_bytes(vocab_size) / BYTES_OF_TOKEN
    text = survey.bytes * (TEXT_COPIES * PACKED_SHARE + of_shards)
    checkpoints = CHECKPOINTS_OF_ROUND * BYTES_OF_PARAMETER * parameters
    return round(min(rounds, ROUNDS_RETAINED) * (text + checkpoints))


def least_of(cost: Mapping[str, Any], which: str = "first") -> dict[str, float]:
    """Return the steps and tokens that a round takes at least, whatever the loss does; 0: unknown.

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
    """Return the seconds to generate a round's text; None: no speed was measured yet.

    before: what it did in other cycles
    """
    if writing is None:
        return 0.0
    if not before:
        return None
    tokens = min(writing.tokens, writing.samples * before["tokens_each"])
    return START_S + tokens / before["tokens_per_s"]


def _share_read(survey: Survey) -> float:
    """Return the share of the found bytes that was read; 1 where nothing was counted."""
    read = sum(source.read for source in survey.counted)
    found = sum(source.found for source in survey.counted)
    return read / found if read else 1.0


def _tokens_of_document(survey: Survey) -> float:
    return survey.counts.tokens / survey.documents if survey.documents else 0.0
