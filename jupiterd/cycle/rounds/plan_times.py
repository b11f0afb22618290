"""How long the phases of a round may take, and what a cycle leaves on a disk.

Owns that arithmetic, which is rough on purpose: it tells seconds from hours. Doesn't know machines:
speeds come in, where they are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.data.holdout_outlook import HoldoutOutlook
from jupiterd.cycle.data.survey import Survey
from jupiterd.cycle.data.token_width import token_bytes
from jupiterd.cycle.data.verdict_check import BYTES_OF_TOKEN

START_S = 3.0
"""Of the worker that does a phase."""
FORWARD_SHARE = 1 / 3
"""Of the time of a training step a token takes that is only scored."""
STUDENTS = 2
"""Models that are scored on the held-out text: the candidate, and what it is compared with."""

TEXT_COPIES = 3
"""Documents, cleaned ones and kept ones; packed to about a third each."""
PACKED_SHARE = 1 / 3
BYTES_OF_PARAMETER = 12
"""Of a checkpoint: weights and two moments in fp32."""
ROUNDS_KEPT = 2
CHECKPOINTS_OF_ROUND = 2


@dataclass(frozen=True)
class PhaseTimes:
    """Of round 1, in seconds; None where nobody knows."""

    collect_s: float | None
    filter_s: float | None
    generate_s: float | None
    """0: nothing is generated in it."""
    train_s: float | None
    judge_s: float | None
    train_all_s: float | None
    """Of all rounds together."""
    is_polite: bool = False
    """Pages of the web are fetched, which takes so long at the most."""

    def all_rounds_s(self, rounds: int) -> float | None:
        """Return the time of the whole cycle; later rounds collect only what has changed."""
        each = (self.filter_s, self.generate_s, self.judge_s)
        if self.collect_s is None or self.train_all_s is None or None in each:
            return None
        return self.collect_s + rounds * sum(part or 0.0 for part in each) + self.train_all_s


def phase_times(
    survey: Survey, outlook: HoldoutOutlook, foretold: Mapping[str, Any], rounds: int, far_s: float
) -> PhaseTimes:
    """Return how long each phase may take, of training the steps that are taken in any case.

    far_s: the longest time that politeness towards web sites takes; 0: there are none
    """
    expected: Mapping[str, Any] = foretold.get("expected") or {}
    rate = expected.get("tokens_per_s") or expected.get("guessed_tokens_per_s") or 0.0
    cost: Mapping[str, Any] = foretold.get("cost") or {}
    share = _share_read(survey)
    scored = outlook.gate_documents + outlook.dev_documents
    tokens = STUDENTS * scored * _tokens_of_document(survey)
    return PhaseTimes(
        collect_s=START_S + survey.reading_s / share + far_s,
        filter_s=START_S + survey.judging_s / share,
        generate_s=0.0,
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
    return round(min(rounds, ROUNDS_KEPT) * (text + checkpoints))


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


def _share_read(survey: Survey) -> float:
    """Return how much of what was found was read; 1 where nothing was counted."""
    read = sum(source.read for source in survey.counted)
    found = sum(source.found for source in survey.counted)
    return read / found if read else 1.0


def _tokens_of_document(survey: Survey) -> float:
    return survey.counts.tokens / survey.documents if survey.documents else 0.0
