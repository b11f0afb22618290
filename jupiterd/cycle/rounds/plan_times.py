"""How long the phases of a round may take, and what a cycle leaves on a disk.

Owns that arithmetic, which is rough on purpose: it tells seconds from hours. Doesn't know machines:
speeds come in, where they are known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.data.holdout_outlook import BYTES_OF_TOKEN, HoldoutOutlook
from jupiterd.cycle.data.survey import Survey

START_S = 3.0
"""Of the worker that does a phase."""
FORWARD_SHARE = 1 / 3
"""Of the time of a training step a token takes that is only scored."""
STUDENTS = 2
"""Models that are scored on the held-out text: the candidate, and what it is compared with."""

TEXT_COPIES = 3
"""Documents, cleaned ones and kept ones; packed to about a third each."""
PACKED_SHARE = 1 / 3
BYTES_OF_SHARD_TOKEN = 2
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
    survey: Survey, outlook: HoldoutOutlook, foretold: Mapping[str, Any], far_s: float
) -> PhaseTimes:
    """Return how long each phase may take.

    far_s: the longest time that politeness towards web sites takes; 0: there are none
    """
    rate = (foretold.get("expected") or {}).get("tokens_per_s") or 0.0
    cost: Mapping[str, Any] = foretold.get("cost") or {}
    reading_s = _reading_s(survey)
    scored = outlook.gate_documents + outlook.dev_documents
    tokens = STUDENTS * scored * _tokens_of_document(survey)
    return PhaseTimes(
        collect_s=START_S + reading_s + far_s,
        filter_s=START_S + reading_s,
        generate_s=0.0,
        train_s=(cost.get("first") or {}).get("eta_s"),
        judge_s=START_S * STUDENTS + tokens * FORWARD_SHARE / rate if rate else None,
        train_all_s=cost.get("eta_s"),
        is_polite=far_s > 0,
    )


def disk_bytes(survey: Survey, parameters: int, rounds: int) -> int:
    """Return about what a cycle leaves on a disk that has all of it."""
    text = survey.bytes * (TEXT_COPIES * PACKED_SHARE + BYTES_OF_SHARD_TOKEN / BYTES_OF_TOKEN)
    checkpoints = CHECKPOINTS_OF_ROUND * BYTES_OF_PARAMETER * parameters
    return round(min(rounds, ROUNDS_KEPT) * (text + checkpoints))


def _reading_s(survey: Survey) -> float:
    """Return how long all of it takes at the pace of the look; what wasn't counted takes none."""
    read = sum(source.read for source in survey.counted)
    found = sum(source.found for source in survey.counted)
    return survey.took_s * found / read if read else 0.0


def _tokens_of_document(survey: Survey) -> float:
    documents = sum(source.documents for source in survey.counted)
    return survey.counts.tokens / documents if documents else 0.0
