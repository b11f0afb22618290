"""The verdict on a candidate, with all the numbers behind it.

Owns what the answers come to. Doesn't know models, files, or what follows from a verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.data.split import DEV, GATE
from jupiterd.cycle.gate.case import Case, Findings, GateSettings
from jupiterd.cycle.gate.decision import Answer, Decision, Outcome, Question
from jupiterd.cycle.gate.fill_ins import ClozeComparison
from jupiterd.cycle.gate.forgetting import Forgetting, forgotten
from jupiterd.cycle.gate.looks import AlphaLedger, ledger_at
from jupiterd.cycle.gate.paired import Evidence
from jupiterd.cycle.gate.power import TextPower
from jupiterd.cycle.gate.proxy import ArmComparison, ProxyRun
from jupiterd.cycle.gate.questions import ask
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.gate.scores import DocumentScore, pooled_bpb
from jupiterd.cycle.gate.tie_break import TieBreak
from jupiterd.cycle.gate.vault import VaultLook, look_into_vault

NOTHING_ELSE = Findings()


@dataclass(frozen=True)
class DevelopmentLook:
    """How a candidate does on development text, which is scored in every round.

    Bits per byte over all of it; infinite where a score isn't finite. A promotion never depends on
    them: they are what a generator is rolled back by (`cycle.generation.promotion`).
    """

    documents: int
    candidate_bpb: float
    incumbent_bpb: float


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
    generator_bpb: float
    dev: DevelopmentLook | None
    """None where no text is held out for that."""
    byte_bpb: float
    unigram_bpb: float
    evidence: Evidence | None
    """Against the last student that was shown to be better than the one before it."""
    against_generator: Evidence | None
    """Against the generator in force."""
    strata: Mapping[str, float]
    """Mean improvement in bits per byte of each stratum and of the rarest quarter."""
    questions: Mapping[str, Answer]
    """Each with its answer, in the order in which they are asked."""
    ledger: AlphaLedger
    reach: TextPower | None
    cloze: ClozeComparison | None
    sanity: Sanity | None
    teaching: ArmComparison | None
    """The candidate's text beside the generator's, or beside real text alone; None: not tried."""
    control: ArmComparison | None
    """What the round packed beside real text alone; None where it packed no synthetic text."""
    proxies: Sequence[ProxyRun]
    """The small students that were trained for both."""
    vault: VaultLook | None
    tie_break: TieBreak | None = None
    """What a judge said; None where the domain names none."""
    base_bpb: float | None = None
    """Of the model that the cycle began with; None where none was brought."""
    against_base: Evidence | None = None
    """Against that model."""
    forgetting: Forgetting | None = None
    """On text that isn't of the domain, beside that model."""

    def passed(self, question: Question) -> bool:
        """Say whether a question was asked and answered well."""
        return self.questions[question].outcome is Outcome.PASSED

    @property
    def is_tied(self) -> bool:
        """Say whether all that is left is a judge's word."""
        answer = self.questions.get(Question.PREFERRED)
        return answer is not None and answer.outcome is not Outcome.NOT_ASKED


def decide(
    scores: Sequence[DocumentScore],
    settings: GateSettings,
    look: int,
    findings: Findings = NOTHING_ELSE,
) -> Verdict:
    """Return the verdict on the candidate, the same whatever the order of the scores."""
    ordered = sorted(scores, key=lambda score: score.id)
    judged = [score for score in ordered if score.part == GATE]
    ledger = ledger_at(settings.alpha, look)
    case = Case(judged, settings, ledger, findings, forgotten(ordered))
    answers = ask(case)
    decision, reason = _conclude(answers)
    return Verdict(
        decision=decision,
        reason=reason,
        look=look,
        alpha_spent=case.ledger.this_look,
        documents=len(judged),
        clusters=case.cluster_count,
        bytes=sum(score.bytes for score in judged),
        val_bpb=pooled_bpb(judged, [score.candidate_nats for score in judged]),
        val_bpb_document_mean=_mean([score.bpb(score.candidate_nats) for score in judged]),
        incumbent_bpb=pooled_bpb(judged, [score.incumbent_nats for score in judged]),
        generator_bpb=pooled_bpb(judged, [score.generator_nats for score in judged]),
        dev=look_at_development([score for score in ordered if score.part == DEV]),
        byte_bpb=pooled_bpb(judged, [score.byte_nats for score in judged]),
        unigram_bpb=pooled_bpb(judged, [score.unigram_nats for score in judged]),
        evidence=case.evidence,
        against_generator=case.against_generator,
        strata=case.strata,
        questions={str(question): answer for question, answer in answers.items()},
        ledger=case.ledger,
        reach=case.reach,
        cloze=case.cloze,
        sanity=findings.sanity,
        teaching=findings.taught.by_candidate,
        control=findings.taught.by_mix,
        proxies=findings.taught.runs,
        vault=look_into_vault(ordered) if len(judged) < len(ordered) else None,
        tie_break=case.tie_break,
        base_bpb=_base_bpb(case),
        against_base=case.against_base,
        forgetting=case.forgetting,
    )


def _base_bpb(case: Case) -> float | None:
    if not case.has_base:
        return None
    nats = [math.inf if each.base_nats is None else each.base_nats for each in case.scores]
    return pooled_bpb(case.scores, nats)


def _conclude(answers: Mapping[Question, Answer]) -> tuple[Decision, str]:
    """Return what the first question says that decides; where none does, the candidate wins."""
    for answer in answers.values():
        if answer.decides:
            return answer.decision, answer.reason
    is_tied = answers[Question.BETTER].outcome is Outcome.TIED
    return Decision.PROMOTE, answers[Question.PREFERRED if is_tied else Question.BETTER].reason


def _mean(values: Sequence[float]) -> float:
    if not values or not all(map(math.isfinite, values)):
        return math.inf
    return math.fsum(values) / len(values)


def look_at_development(scores: Sequence[DocumentScore]) -> DevelopmentLook | None:
    """Return the bits per byte of candidate and incumbent on the same text; None without text."""
    if not scores:
        return None
    return DevelopmentLook(
        len(scores),
        pooled_bpb(scores, [score.candidate_nats for score in scores]),
        pooled_bpb(scores, [score.incumbent_nats for score in scores]),
    )
