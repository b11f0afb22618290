"""Whether a candidate is better than the incumbent on held-out real text, with all the numbers.

Owns the statistics of the decision. Doesn't know models, files, or what follows from a verdict.

Each document is its own pair: d = bits per byte of the incumbent - those of the candidate, so that
positive is better. The estimate is the mean of d over documents. Documents of one cluster (a
package, a site) err together, so the variance is the cluster-robust one that the leave-one-cluster-
out jackknife gives. With N documents in G clusters, n of them in a cluster, and e = d - mean,

    variance = (G - 1) / G * sum over clusters of ((sum of e in the cluster) / (N - n))^2

(CV3 of MacKinnon, Nielsen & Webb, Journal of Applied Econometrics 38(5), 2023, for a mean). Where
clusters are equally large it equals the usual G / (G - 1) * sum of (sum of e)^2 / N^2 (Cameron &
Miller, Journal of Human Resources 50(2), 2015). It is compared with Student's t, whose degrees of
freedom are those of the *effective* number of clusters, N^2 / sum of n^2, less one: again G - 1
where clusters are equally large (after Carter, Schnepel & Steigerwald, Review of Economics and
Statistics 99(4), 2017). With unequal ones the usual formulas promote too often: in a simulation
with 65 of 95 documents in two of 32 clusters they spent 33 % instead of 4.3 %, these 3 %.

Look k of a cycle spends alpha * 6 / (pi^2 k^2), one-sided; over all looks that adds up to alpha.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from jupiterd.cycle.student_t import t_cdf, t_upper_quantile
from jupiterd.errors import Bug

STRATUM_MIN_DOCUMENTS = 10
"""A stratum with fewer documents is shown and vetoes nothing: its mean is noise."""

RARE_STRATUM = "rarest-quarter"
"""The quarter of the documents with the rarest tokens (by the unigram baseline): collapse shows
there first."""


class Decision(StrEnum):
    """What the gate can say."""

    PROMOTE = "PROMOTE"
    """Shown to be better by more than the margin; nothing vetoes."""
    HOLD = "HOLD"
    """Neither shown to be better by the margin nor to be worse."""
    REJECT = "REJECT"
    """Shown to be worse, or broken."""
    ABSTAIN = "ABSTAIN"
    """Too little evidence for any verdict."""


@dataclass(frozen=True)
class GateSettings:
    """The domain's rules for a verdict."""

    alpha: float
    margin_bpb: float
    stratum_veto_bpb: float
    min_documents: int
    min_clusters: int


@dataclass(frozen=True)
class DocumentScore:
    """What every model made of one held-out document, in nats over the same bytes."""

    id: str
    cluster: str
    stratum: str
    bytes: int
    tokens: int
    """Tokens of the candidate's tokenizer."""
    candidate_nats: float
    incumbent_nats: float
    byte_nats: float
    unigram_nats: float

    def bpb(self, nats: float) -> float:
        """Return nats over this document as bits per byte."""
        return nats / (math.log(2) * self.bytes)

    @property
    def improvement_bpb(self) -> float:
        """Return how many bits per byte the candidate saves; negative where it is worse."""
        return self.bpb(self.incumbent_nats - self.candidate_nats)


@dataclass(frozen=True)
class Evidence:
    """The paired test's numbers; improvement is positive where the candidate is better."""

    mean_improvement_bpb: float
    standard_error_bpb: float
    degrees_of_freedom: float
    t: float
    """Of the hypothesis that the improvement is the margin at most."""
    p: float
    """One-sided, of the same hypothesis."""
    lower_bound_bpb: float
    """The improvement is above this, at the confidence that this look may spend."""
    upper_bound_bpb: float
    """The improvement is below this, at the same confidence."""


@dataclass(frozen=True)
class Verdict:
    """The decision and every number behind it; a number that couldn't be had is None."""

    decision: Decision
    reason: str
    look: int
    alpha_spent: float
    """What this look may spend of the domain's alpha."""
    documents: int
    clusters: int
    bytes: int
    val_bpb: float
    """The candidate's bits per byte over all bytes; infinite where a score isn't finite."""
    val_bpb_document_mean: float
    incumbent_bpb: float
    byte_bpb: float
    unigram_bpb: float
    evidence: Evidence | None
    strata: Mapping[str, float]
    """Mean improvement in bits per byte of each stratum and of the rarest quarter."""


def spent_alpha(alpha: float, look: int) -> float:
    """Return what look number `look` (from 1) may spend; the sum over all looks is `alpha`."""
    if look < 1:
        raise Bug(f"looks are counted from 1, not {look}")
    return alpha * 6 / (math.pi**2 * look**2)


def decide(scores: Sequence[DocumentScore], settings: GateSettings, look: int) -> Verdict:
    """Return the verdict on the candidate, the same whatever the order of the scores."""
    ordered = sorted(scores, key=lambda score: score.id)
    alpha = spent_alpha(settings.alpha, look)
    clusters = len({score.cluster for score in ordered})
    evidence = measure(ordered, settings.margin_bpb, alpha) if _is_usable(ordered) else None
    strata = stratum_improvements(ordered) if evidence else {}
    decision, reason = _judge(ordered, settings, evidence, strata)
    return Verdict(
        decision=decision,
        reason=reason,
        look=look,
        alpha_spent=alpha,
        documents=len(ordered),
        clusters=clusters,
        bytes=sum(score.bytes for score in ordered),
        val_bpb=_pooled_bpb(ordered, [score.candidate_nats for score in ordered]),
        val_bpb_document_mean=_mean([score.bpb(score.candidate_nats) for score in ordered]),
        incumbent_bpb=_pooled_bpb(ordered, [score.incumbent_nats for score in ordered]),
        byte_bpb=_pooled_bpb(ordered, [score.byte_nats for score in ordered]),
        unigram_bpb=_pooled_bpb(ordered, [score.unigram_nats for score in ordered]),
        evidence=evidence,
        strata=strata,
    )


def measure(scores: Sequence[DocumentScore], margin_bpb: float, alpha: float) -> Evidence:
    """Return the paired test at one-sided `alpha`; scores are finite, of two clusters or more."""
    mean = _mean([score.improvement_bpb for score in scores])
    errors: defaultdict[str, float] = defaultdict(float)
    sizes: defaultdict[str, int] = defaultdict(int)
    for score in scores:
        errors[score.cluster] += score.improvement_bpb - mean
        sizes[score.cluster] += 1
    clusters = len(sizes)
    squares = math.fsum(
        (error / (len(scores) - sizes[name])) ** 2 for name, error in errors.items()
    )
    standard_error = math.sqrt((clusters - 1) / clusters * squares)
    effective_clusters = len(scores) ** 2 / sum(size * size for size in sizes.values())
    # Less would be one cluster in all but name; t with one degree hardly ever promotes.
    degrees = max(1.0, effective_clusters - 1)
    t = _ratio(mean - margin_bpb, standard_error)
    reach = t_upper_quantile(alpha, degrees) * standard_error
    return Evidence(
        mean, standard_error, degrees, t, t_cdf(-t, degrees), mean - reach, mean + reach
    )


def stratum_improvements(scores: Sequence[DocumentScore]) -> dict[str, float]:
    """Return the mean improvement of each stratum that can speak, and of the rarest quarter."""
    strata: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        strata[score.stratum].append(score.improvement_bpb)
    # Chosen by a baseline that is neither contestant, so that the choice favours neither.
    by_rarity = sorted(scores, key=lambda score: (-score.bpb(score.unigram_nats), score.id))
    strata[RARE_STRATUM] = [score.improvement_bpb for score in by_rarity[: len(scores) // 4]]
    return {
        name: _mean(values)
        for name, values in sorted(strata.items())
        if len(values) >= STRATUM_MIN_DOCUMENTS
    }


def _judge(
    scores: Sequence[DocumentScore],
    settings: GateSettings,
    evidence: Evidence | None,
    strata: Mapping[str, float],
) -> tuple[Decision, str]:
    return (
        _broken(scores)
        or _too_little(scores, settings)
        or _compared(_required(evidence), settings, strata)
    )


def _broken(scores: Iterable[DocumentScore]) -> tuple[Decision, str] | None:
    rows = list(scores)
    bad = sum(not math.isfinite(score.candidate_nats) for score in rows)
    if bad:
        return (
            Decision.REJECT,
            f"the candidate gives no finite score on {bad} of {len(rows)} documents",
        )
    others = (value for s in rows for value in (s.incumbent_nats, s.byte_nats, s.unigram_nats))
    if not all(map(math.isfinite, others)):
        return (
            Decision.ABSTAIN,
            "the incumbent or a baseline gives no finite score on some documents",
        )
    return None


def _too_little(
    scores: Sequence[DocumentScore], settings: GateSettings
) -> tuple[Decision, str] | None:
    clusters = len({score.cluster for score in scores})
    needed_clusters = max(2, settings.min_clusters)
    if len(scores) < settings.min_documents:
        return (
            Decision.ABSTAIN,
            f"{len(scores)} held-out documents are below the {settings.min_documents} asked for",
        )
    if clusters < needed_clusters:
        return (
            Decision.ABSTAIN,
            f"held-out text from {clusters} clusters is less than the {needed_clusters} asked for",
        )
    return None


def _compared(
    evidence: Evidence, settings: GateSettings, strata: Mapping[str, float]
) -> tuple[Decision, str]:
    shown = (
        f"improvement {evidence.mean_improvement_bpb:+.4f} bits per byte, "
        f"between {evidence.lower_bound_bpb:+.4f} and {evidence.upper_bound_bpb:+.4f}"
    )
    if evidence.upper_bound_bpb < 0:
        return Decision.REJECT, f"worse than the incumbent: {shown}"
    if not evidence.lower_bound_bpb > settings.margin_bpb:
        return (
            Decision.HOLD,
            f"not shown to be better by more than {settings.margin_bpb}: {shown}",
        )
    worst = min(strata, key=lambda name: strata[name], default="")
    if worst and strata[worst] < -settings.stratum_veto_bpb:
        return (
            Decision.HOLD,
            f"better on the whole ({shown}), but {-strata[worst]:.4f} worse in {worst}",
        )
    return Decision.PROMOTE, f"better by more than {settings.margin_bpb}: {shown}"


def _is_usable(scores: Sequence[DocumentScore]) -> bool:
    return _broken(scores) is None and len({score.cluster for score in scores}) >= 2


def _required(evidence: Evidence | None) -> Evidence:
    if evidence is None:
        raise Bug("the gate came to compare without evidence")
    return evidence


def _pooled_bpb(scores: Sequence[DocumentScore], nats: Sequence[float]) -> float:
    total_bytes = sum(score.bytes for score in scores)
    if not total_bytes or not all(map(math.isfinite, nats)):
        return math.inf
    return math.fsum(nats) / (math.log(2) * total_bytes)


def _mean(values: Sequence[float]) -> float:
    if not values or not all(map(math.isfinite, values)):
        return math.inf
    return math.fsum(values) / len(values)


def _ratio(value: float, standard_error: float) -> float:
    """Return value / standard error; with no spread at all the sign decides."""
    if standard_error > 0:
        return value / standard_error
    return math.copysign(math.inf, value) if value else 0.0
