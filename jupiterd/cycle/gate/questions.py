"""The rules that answer the gate's questions about a candidate, in order.

Owns each question's rule and the sentence of its reason. Doesn't combine the answers to a decision
(`verdict`).
"""

from jupiterd.cycle.gate.case import Case
from jupiterd.cycle.gate.decision import AnswerOutcome, Answers, Decision, Question, QuestionAnswer
from jupiterd.cycle.gate.paired import Evidence
from jupiterd.cycle.gate.proxy import Arm
from jupiterd.cycle.gate.sanity import insane
from jupiterd.cycle.gate.strata import worst_stratum
from jupiterd.errors import Bug
from jupiterd.formats import counted

_NOT_ASKED = QuestionAnswer(AnswerOutcome.NOT_ASKED, "an earlier question decided")


def ask(case: Case) -> Answers:
    """Return the answer to every question; those after the one that decides aren't asked."""
    answers: dict[Question, QuestionAnswer] = {}
    is_decided = False
    for question, rule in _RULES.items():
        if not _is_asked(question, case):
            continue
        answers[question] = _NOT_ASKED if is_decided else rule(case)
        is_decided = is_decided or answers[question].decides
    return answers


def _is_asked(question: Question, case: Case) -> bool:
    """Say whether the case has what a question is about: a judge, a base model, general text."""
    if question is Question.PREFERRED:
        return case.findings.judged is not None
    if question is Question.BEYOND_BASE:
        return case.has_base
    return question is not Question.KEEPS or case.forgetting is not None


def _sane(case: Case) -> QuestionAnswer:
    if case.unscored:
        of_all = f"{case.unscored} of {len(case.scores)} documents"
        return _failed(Decision.REJECT, f"the candidate gives no finite score on {of_all}")
    sanity = case.findings.sanity
    if sanity is None:
        return _passed("finite scores on every document; nobody has had it write")
    if wrong := insane(sanity):
        return _failed(Decision.REJECT, wrong)
    return _passed(
        f"finite scores on every document, {sanity.looping} of {sanity.completions} completions "
        f"repeat themselves, {sanity.empty} are empty"
    )


def _better(case: Case) -> QuestionAnswer:
    return _too_little(case) or _compared(case, _required(case.evidence))


def _too_little(case: Case) -> QuestionAnswer | None:
    settings = case.settings
    needed_clusters = max(2, settings.min_clusters)
    if not case.is_finite:
        reason = "the incumbent or a baseline gives no finite score on some documents"
    elif len(case.scores) < settings.min_documents:
        reason = (
            f"{len(case.scores)} held-out documents are below the "
            f"{settings.min_documents} asked for{_needed(case)}"
        )
    elif case.cluster_count < needed_clusters:
        reason = (
            f"held-out text from {counted(case.cluster_count, 'cluster')} is less than the "
            f"{needed_clusters} asked for{_needed(case)}"
        )
    else:
        return None
    return _failed(Decision.ABSTAIN, reason)


def _needed(case: Case) -> str:
    """Return a clause with the amount of text that would suffice; empty without a test."""
    reach = case.reach
    if reach is None or case.evidence is None or not case.evidence.standard_error_bpb:
        return ""
    documents = max(reach.documents, case.settings.min_documents)
    clusters = max(reach.clusters, case.settings.min_clusters)
    return (
        f"; about {counted(documents, 'document')} of {counted(clusters, 'cluster')} would show "
        f"a true gain of {reach.wanted_bpb:.4f} with a chance of 80 %"
    )


def _compared(case: Case, evidence: Evidence) -> QuestionAnswer:
    margin, shown = case.settings.margin_bpb, shown_interval(evidence)
    if evidence.upper_bound_bpb < 0:
        return _failed(Decision.REJECT, f"worse than the incumbent: {shown}")
    if case.is_tied:
        return QuestionAnswer(
            AnswerOutcome.TIED, f"not shown to be better by more than {margin}: {shown}"
        )
    if not evidence.lower_bound_bpb > margin:
        return _failed(Decision.HOLD, f"not shown to be better by more than {margin}: {shown}")
    if worst := worst_stratum(case.strata, case.settings.stratum_veto_bpb):
        return _failed(
            Decision.HOLD,
            f"better on the whole ({shown}), but {-case.strata[worst]:.4f} worse in {worst}",
        )
    return _passed(f"better by more than {margin}: {shown}")


def _beyond_base(case: Case) -> QuestionAnswer:
    evidence, margin = case.against_base, case.settings.margin_bpb
    if evidence is None:
        return _failed(
            Decision.ABSTAIN, "the model that was brought has no score on some documents"
        )
    shown, brought = shown_interval(evidence), "the model that was brought"
    if evidence.upper_bound_bpb < 0:
        return _failed(Decision.REJECT, f"worse than {brought}: {shown}")
    if not evidence.lower_bound_bpb > margin:
        return _failed(
            Decision.HOLD, f"not shown to be better than {brought} by more than {margin}: {shown}"
        )
    return _passed(f"better than {brought} by more than {margin}: {shown}")


def _keeps(case: Case) -> QuestionAnswer:
    found, most = case.forgetting, case.settings.max_forgetting
    if found is None:
        raise Bug("the gate came to ask what was forgotten without general text")
    reason = (
        f"general text takes {found.candidate_bpb:.4f} bits per byte, {found.base_bpb:.4f} with "
        f"the model that was brought: {found.growth:+.1%}, at most {most:+.1%} is allowed"
    )
    if found.is_too_much(most):
        return _failed(Decision.HOLD, f"it has forgotten too much: {reason}")
    return _passed(reason)


def _not_worse(case: Case) -> QuestionAnswer:
    evidence, cloze = _required(case.against_generator), case.cloze
    margin, shown = case.settings.margin_bpb, shown_interval(evidence)
    # Gaps are filled by triples whichever baseline is chosen for the bits.
    by_bits, by_gaps = (
        ("counting alone", "a count of byte triples")
        if case.findings.nobody_generates
        else ("the generator in force", "the generator")
    )
    if not evidence.lower_bound_bpb > -margin:
        return _failed(Decision.HOLD, f"not shown to be within {margin} of {by_bits}: {shown}")
    if cloze is None:
        return _passed(f"not worse than {by_bits}: {shown}; there were no gaps to fill")
    gaps = (
        f"fills {cloze.candidate_right} of {cloze.items} gaps rightly, "
        f"{by_gaps} {cloze.generator_right}"
    )
    if cloze.is_worse:
        return _failed(Decision.HOLD, f"worse than {by_gaps} at gaps: {gaps}")
    return _passed(f"not worse than {by_bits}: {shown}; {gaps}")


def _preferred(case: Case) -> QuestionAnswer:
    """Let a judge break a tie; nothing else is asked of it."""
    found = case.tie_break
    if not case.is_tied or found is None:
        return QuestionAnswer(
            AnswerOutcome.NOT_ASKED, "the bits per byte have decided without a judge"
        )
    tied = f"tied with the last student ({shown_interval(_required(case.evidence))})"
    if found.trial is None:
        why_not = found.why_not or "no judge has been asked yet"
        return _failed(Decision.HOLD, f"{tied}; {why_not}")
    if found.preference is None:
        return _failed(
            Decision.HOLD, f"{tied}; the judge {found.judge} abstains: {found.trial.trouble}"
        )
    reason = (
        f"{tied}; of {found.preference.pairs} pairs of answers the judge {found.judge} prefers "
        f"the candidate's in {found.preference.wins}, the last student's in "
        f"{found.preference.losses}, p {found.preference.p:.2g}, of which "
        f"{found.preference.alpha:.2g} is the most"
    )
    return _passed(reason) if found.preference.is_won else _failed(Decision.HOLD, reason)


def _teaches(case: Case) -> QuestionAnswer:
    taught = case.findings.taught
    if taught.wrote_nothing:
        return _failed(Decision.HOLD, taught.wrote_nothing)
    compared = taught.by_candidate
    if compared is None:
        why_not = (
            taught.too_little or taught.why_not or "no small students were trained on its text"
        )
        return QuestionAnswer(AnswerOutcome.NOT_RUN, why_not)
    than = "the generator's" if compared.theirs == Arm.GENERATOR else "real text alone"
    if compared.is_worse:
        return _failed(
            Decision.HOLD,
            f"small students learn less with its text than with {than}: {compared.text()}",
        )
    return _passed(
        f"small students weren't shown to learn less with its text than with {than}: "
        f"{compared.text()}"
    )


def shown_interval(evidence: Evidence) -> str:
    """Return an improvement with its bounds."""
    return (
        f"improvement {evidence.mean_improvement_bpb:+.4f} bits per byte, "
        f"between {evidence.lower_bound_bpb:+.4f} and {evidence.upper_bound_bpb:+.4f}"
    )


def _passed(reason: str) -> QuestionAnswer:
    return QuestionAnswer(AnswerOutcome.PASSED, reason)


def _failed(decision: Decision, reason: str) -> QuestionAnswer:
    return QuestionAnswer(AnswerOutcome.FAILED, reason, decision)


def _required(evidence: Evidence | None) -> Evidence:
    if evidence is None:
        raise Bug("the gate came to compare without evidence")
    return evidence


_RULES = {
    Question.SANE: _sane,
    Question.BETTER: _better,
    Question.BEYOND_BASE: _beyond_base,
    Question.KEEPS: _keeps,
    Question.NOT_WORSE: _not_worse,
    Question.PREFERRED: _preferred,
    Question.TEACHES: _teaches,
}
