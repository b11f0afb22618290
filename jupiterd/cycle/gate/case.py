"""The evidence for one verdict: each statistic is computed once, when a question needs it.

Owns the case: the scores in order, the domain's rules, and the findings other than scores. Doesn't
answer any question of the gate (`questions`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from jupiterd.cycle.gate.alpha_spending import AlphaLedger
from jupiterd.cycle.gate.fill_ins import ClozeComparison, compare_cloze
from jupiterd.cycle.gate.forgetting import Forgetting
from jupiterd.cycle.gate.paired import Evidence, measure
from jupiterd.cycle.gate.power import TextPower, reach_of
from jupiterd.cycle.gate.proxy import Taught
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import ClozeScore, DocumentScore
from jupiterd.cycle.gate.skewness import SKEW_ERRORS
from jupiterd.cycle.gate.strata import stratum_improvements, worst_stratum
from jupiterd.cycle.gate.tie_break import Judged, TieBreak, weigh


@dataclass(frozen=True)
class GateSettings:
    """The domain's rules for a verdict."""

    alpha: float
    margin_bpb: float
    stratum_veto_bpb: float
    min_documents: int
    min_clusters: int
    skew_errors: float | None = SKEW_ERRORS
    """The allowance for skewed errors of few clusters, in standard errors; see `paired.measure`."""
    max_forgetting: float = 0.02
    """The largest tolerated rise of bits per byte on general text, as a share of the base's."""


@dataclass(frozen=True)
class Findings:
    """The results of all trials other than bits per byte."""

    sanity: Sanity | None = None
    """None: the candidate wrote no completions, so its scores alone decide."""
    cloze: Sequence[ClozeScore] = ()
    taught: Taught = field(default_factory=Taught)
    """Results of the small students. Where none were trained, the question counts as not run and
    doesn't hold up a promotion."""
    judged: Judged | None = None
    """A judge's answers; None where the domain names no judge."""
    nobody_generates: bool = False
    """The cycle has no generator: a unigram baseline stands in for it, and the reasons name that
    baseline (reasons of older verdicts don't)."""


@dataclass(frozen=True)
class Case:
    """One candidate before the gate.

    scores: of the documents in the gate's part of the held-out text, ordered by document
    """

    scores: Sequence[DocumentScore]
    settings: GateSettings
    ledger: AlphaLedger
    findings: Findings
    forgetting: Forgetting | None = None
    """General text against the base model; None where the cycle began without one."""

    @cached_property
    def has_base(self) -> bool:
        """Whether the cycle began with a base model."""
        return any(score.base_nats is not None for score in self.scores)

    @cached_property
    def clusters(self) -> Sequence[str]:
        """The cluster of each document."""
        return [score.cluster for score in self.scores]

    @cached_property
    def cluster_count(self) -> int:
        """The number of distinct clusters."""
        return len(set(self.clusters))

    @cached_property
    def unscored(self) -> int:
        """The number of documents to which the candidate gives no finite score."""
        return sum(not math.isfinite(score.candidate_nats) for score in self.scores)

    @cached_property
    def is_finite(self) -> bool:
        """Whether every model gives every document a finite score."""
        return all(
            map(
                math.isfinite,
                (
                    score.candidate_nats
                    + score.incumbent_nats
                    + score.generator_nats
                    + score.byte_nats
                    + score.unigram_nats
                    + (score.base_nats or 0.0)
                    for score in self.scores
                ),
            )
        )

    @cached_property
    def is_measurable(self) -> bool:
        """Whether a test can be computed: finite scores of two clusters or more."""
        return self.is_finite and self.cluster_count >= 2

    @cached_property
    def improvements(self) -> Sequence[float]:
        """Bits per byte that the candidate saves the last student, for each document."""
        return [score.improvement_bpb for score in self.scores]

    @cached_property
    def evidence(self) -> Evidence | None:
        """The test against the last student."""
        return self._tested(self.improvements, self.settings.margin_bpb)

    @cached_property
    def against_generator(self) -> Evidence | None:
        """The test of non-inferiority to the generator in force, by the margin."""
        saved = [score.against_generator_bpb for score in self.scores]
        return self._tested(saved, -self.settings.margin_bpb)

    @cached_property
    def against_base(self) -> Evidence | None:
        """The test against the base model; None where a document lacks its score."""
        if not self.has_base or any(score.base_nats is None for score in self.scores):
            return None
        saved = [score.against_base_bpb for score in self.scores]
        return self._tested(saved, self.settings.margin_bpb)

    @cached_property
    def strata(self) -> dict[str, float]:
        """Stratum -> mean improvement over the last student, in bits per byte.

        Strata with too little text are left out.
        """
        return stratum_improvements(self.scores, self.improvements) if self.is_measurable else {}

    @cached_property
    def reach(self) -> TextPower | None:
        """The statistical power of this text: the gain that it can show; None without a test."""
        if self.evidence is None:
            return None
        return reach_of(
            self.evidence,
            len(self.scores),
            self.cluster_count,
            self.settings.margin_bpb,
            self.ledger.for_each_test,
        )

    @cached_property
    def cloze(self) -> ClozeComparison | None:
        """The comparison of candidate and generator at filling gaps; None without such trials."""
        return compare_cloze(self.findings.cloze)

    @cached_property
    def is_tied(self) -> bool:
        """Whether a judge may break the tie; see the rule in `tie_break`."""
        evidence, margin = self.evidence, self.settings.margin_bpb
        if self.findings.judged is None or evidence is None:
            return False
        is_close = -margin < evidence.lower_bound_bpb <= margin and evidence.upper_bound_bpb >= 0
        return is_close and not worst_stratum(self.strata, self.settings.stratum_veto_bpb)

    @cached_property
    def tie_break(self) -> TieBreak | None:
        """The result of the judge's answers; None where the domain names no judge."""
        judged = self.findings.judged
        return None if judged is None else weigh(judged, self.ledger.for_each_test)

    def _tested(self, saved: Sequence[float], margin_bpb: float) -> Evidence | None:
        if not self.is_measurable:
            return None
        return measure(
            saved,
            self.clusters,
            margin_bpb,
            self.ledger.for_each_test,
            skew_errors=self.settings.skew_errors,
        )
