"""The gate's verdict on a candidate: the decision, the reason, and every number behind them.

Owns how the answers to the gate's questions combine to one decision. Doesn't know models, files, or
what the cycle does with a verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.data.split import DEV, GATE
from jupiterd.cycle.gate.alpha_spending import AlphaLedger, ledger_at
from jupiterd.cycle.gate.case import Case, Findings, GateSettings
from jupiterd.cycle.gate.decision import AnswerOutcome, Decision, Question, QuestionAnswer
from jupiterd.cycle.gate.fill_ins import ClozeComparison
from jupiterd.cycle.gate.forgetting import Forgetting, forgotten
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
    """The candidate's and the incumbent's scores on development text, measured in every round.

    Bits per byte over all of that text; infinite if a score isn't finite. The gate never uses them:
    `cycle.generation.promotion` uses them to roll a generator back.
    """

    documents: int
    candidate_bpb: float
    incumbent_bpb: float


@dataclass(frozen=True)
class Verdict:
    """The gate's decision and every number behind it; None stands for a number that is missing."""

    decision: Decision
    reason: str
    look: int
    alpha_spent: float
    """The significance level that this look may spend, of the cycle's alpha."""
    documents: int
    clusters: int
    bytes: int
    val_bpb: float
    """The candidate's bits per byte over all bytes; infinite if a score isn't finite."""
    val_bpb_document_mean: float
    incumbent_bpb: float
    generator_bpb: float
    dev: DevelopmentLook | None
    """None if the domain keeps no development text."""
    byte_bpb: float
    unigram_bpb: float
    evidence: Evidence | None
    """The paired test against the last student that beat the one before it."""
    against_generator: Evidence | None
    """The paired test against the generator in force."""
    strata: Mapping[str, float]
    """Mean improvement, in bits per byte, of each stratum and of the rarest quarter."""
    questions: Mapping[str, QuestionAnswer]
    """Question -> its answer, in the order in which the gate asks them."""
    ledger: AlphaLedger
    reach: TextPower | None
    cloze: ClozeComparison | None
    sanity: Sanity | None
    teaching: ArmComparison | None
    """Small students on the candidate's text against those on the text of the generator in force,
    or on real text alone; None: not tried."""
    control: ArmComparison | None
    """Small students on the round's mix against those on real text alone; None if the round packed
    no synthetic text."""
    proxies: Sequence[ProxyRun]
    """The small students trained for `teaching` and `control`."""
    vault: VaultLook | None
    tie_break: TieBreak | None = None
    """The judge's preference; None if the domain names no judge."""
    base_bpb: float | None = None
    """Bits per byte of the model that the cycle started from; None if it started without one."""
    against_base: Evidence | None = None
    """The paired test against the model that the cycle started from."""
    forgetting: Forgetting | None = None
    """Scores on general text, compared with the model that the cycle started from."""

    def passed(self, question: Question) -> bool:
        """Return whether the gate asked this question and the candidate passed it."""
        return self.questions[question].outcome is AnswerOutcome.PASSED

    @property
    def is_tied(self) -> bool:
        """Return whether only the judge's preference is left to decide."""
        answer = self.questions.get(Question.PREFERRED)
        return answer is not None and answer.outcome is not AnswerOutcome.NOT_ASKED


def decide(
    scores: Sequence[DocumentScore],
    settings: GateSettings,
    look: int,
    findings: Findings = NOTHING_ELSE,
) -> Verdict:
    """Return the verdict on the candidate; the order of the scores doesn't matter.

    Args:
        scores: documents of the gate's, the development and the vault's text.
        settings: the domain's margins and alpha.
        look: the number of this look in the cycle, from 1; `alpha_spending` makes a level of it.
        findings: the results of all other trials.
    """
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


def _conclude(answers: Mapping[Question, QuestionAnswer]) -> tuple[Decision, str]:
    """Return the decision and reason of the first deciding answer; if none decides, promote."""
    for answer in answers.values():
        if answer.decides:
            return answer.decision, answer.reason
    is_tied = answers[Question.BETTER].outcome is AnswerOutcome.TIED
    return Decision.PROMOTE, answers[Question.PREFERRED if is_tied else Question.BETTER].reason


def _mean(values: Sequence[float]) -> float:
    if not values or not all(map(math.isfinite, values)):
        return math.inf
    return math.fsum(values) / len(values)


def look_at_development(scores: Sequence[DocumentScore]) -> DevelopmentLook | None:
    """Return bits per byte of candidate and incumbent on development text; None without text."""
    if not scores:
        return None
    return DevelopmentLook(
        len(scores),
        pooled_bpb(scores, [score.candidate_nats for score in scores]),
        pooled_bpb(scores, [score.incumbent_nats for score in scores]),
    )
