"""Explains a verdict in plain sentences, for a reader who has never seen one.

Owns the words. Pure: it takes the parsed verdict.json and decides nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.cycle.gate.baseline import Baseline
from jupiterd.cycle.gate.decision import AnswerOutcome, Decision, Question
from jupiterd.cycle.gate.proxy import ALPHA, Arm
from jupiterd.cycle.gate.tie_break import LEAST_RIGHT, TRIAL_ALPHA
from jupiterd.cycle.rounds.round_course import RoundCourse, short_training_lines
from jupiterd.formats import counted

Document = Mapping[str, Any]

_QUESTION_TEXTS = {
    Question.SANE: "does it work at all?",
    Question.BETTER: "is it better than the last student?",
    Question.NOT_WORSE: "is it at least as good as the generator?",
    Question.BEYOND_BASE: "is it better than the model that was brought?",
    Question.KEEPS: "does it still know other text?",
    Question.PREFERRED: "are its answers preferred to the last student's?",
    Question.TEACHES: "does its text teach small students as much?",
}
_FOLLOWS = {
    Decision.PROMOTE: "The candidate begins to write synthetic text: a tenth of the next round's "
    "prompts first.",
    Decision.HOLD: "The generator stays who it was; training goes on from this candidate, and the "
    "next round asks again.",
    Decision.REJECT: "The generator stays who it was, and nobody is measured by this candidate.",
    Decision.ABSTAIN: "Nothing changes, for nothing was shown either way.",
}
_WRITES_NOTHING = (
    "The candidate becomes the promoted model, and the next round's is measured by it; nothing is "
    "generated, for the domain has no templates."
)
_COUNTS = {Baseline.BYTES: "byte triples", Baseline.TOKENS: "tokens"}


_NOBODY_GENERATES = {
    Decision.HOLD: "Nothing is generated; training goes on from this candidate, and the next round "
    "asks again.",
    Decision.REJECT: "Nothing is generated, and nobody is measured by this candidate.",
}
_NEXT_ASKS = "and the next round asks again."


def question_lines(verdict: Document, given: Document) -> list[str]:
    """Return one line for each question, with its outcome.

    given: the compared models, from verdict.json
    """
    return [
        f"{question} {_question_text(question, given)} {answer['outcome']}: {answer['reason']}"
        for question, answer in _answers(verdict)
    ]


def explain(document: Document, course: RoundCourse | None = None) -> list[str]:
    """Return the reasons of the verdict, what a promotion would have needed, and what follows.

    Args:
        document: verdict.json.
        course: of the round's training; None: nobody knows it.
    """
    verdict, given = document["verdict"], document["given"]
    decision = Decision(verdict["decision"])
    lines = [
        f"Round {given['round']}: {decision}. {_follows(decision, given, course)}",
        "",
        *_setting(document),
        "",
    ]
    for question, answer in _answers(verdict):
        outcome = str(answer["outcome"]).upper()
        lines += [f"{question} {_question_text(question, given).capitalize()} {outcome}"]
        lines += [f"   {line}" for line in _answer_text(question, answer, document)]
    control = list(_control(document))
    spaced = [*control, ""] if control else []
    fell_short = None if decision is Decision.PROMOTE else course
    needed = [*(short_training_lines(fell_short) if fell_short else ()), *_needed(document)]
    return [*lines, "", *spaced, *needed, *_ledger(verdict), *_vault(verdict)]


def _follows(decision: Decision, given: Document, course: RoundCourse | None) -> str:
    """Return what a verdict leads to; verdicts of older versions don't name the generator."""
    is_silent = not given.get("templates", True)
    if is_silent and decision is Decision.PROMOTE:
        return _WRITES_NOTHING
    follows = _NOBODY_GENERATES if _is_without_generator(given) else {}
    text = follows.get(decision, _FOLLOWS[decision])
    if course is None or not course.is_last:
        return text
    return text.replace(
        _NEXT_ASKS, f"and this was the last round: {course.more_rounds} asks again."
    )


def _is_without_generator(given: Document) -> bool:
    return "generator" in given and not given["generator"]


def _question_text(question: Question, given: Document) -> str:
    if question is Question.NOT_WORSE and _is_without_generator(given):
        return "is it at least as good as counting alone?"
    return _QUESTION_TEXTS[question]


def _setting(document: Document) -> Iterator[str]:
    verdict, given = document["verdict"], document["given"]
    yield (
        f"{counted(verdict['documents'], 'real document')} of "
        f"{counted(verdict['clusters'], 'source')} that no round "
        f"has trained on were scored: how many bits does a model need for each byte of them? "
        f"Fewer is better."
    )
    # What was decided without a choice took byte triples.
    baseline = _COUNTS[Baseline(verdict.get("baseline") or Baseline.BYTES)]
    base = str(given.get("base") or "")
    yield (
        "The figures below are over all bytes together; an improvement is the mean over documents, "
        "however long."
    )
    rows = [
        ("candidate", "val_bpb", str(given.get("candidate") or "")),
        ("last student", "incumbent_bpb", str(given.get("incumbent") or "")),
        ("generator", "generator_bpb", str(given.get("generator") or "")),
    ]
    if base:
        rows.insert(1, ("brought model", "base_bpb", base))
        rows = [row for row in rows if row[0] != "last student" or row[2] != base]
    for name, key, model in rows:
        who = model[:8] if model else f"a count of {baseline}, for there is no {name} yet"
        yield f"   {name:<13} {_bpb(verdict[key])}  ({who})"
    yield f"   byte triples  {_bpb(verdict['byte_bpb'])}  (what counting alone can do)"
    yield f"   tokens        {_bpb(verdict['unigram_bpb'])}  (counting these alone)"


def _answer_text(question: Question, answer: Document, document: Document) -> Iterator[str]:
    yield f"{_sentence(answer['reason'])}."
    if answer["outcome"] in {AnswerOutcome.NOT_ASKED, AnswerOutcome.NOT_RUN}:
        if question is Question.TEACHES and answer["outcome"] == AnswerOutcome.NOT_RUN:
            yield "Nobody is held up by that."
        return
    yield from _NUMBERS[question](document)


def _sane(document: Document) -> Iterator[str]:
    sanity = document["verdict"]["sanity"]
    if sanity and sanity["code"]:
        theirs = sanity["generator_parsed"]
        beside = "" if theirs is None else f", of the generator's {theirs}"
        yield f"{sanity['parsed']} of its {sanity['code']} completions parse as code{beside}."


def _better(document: Document) -> Iterator[str]:
    verdict, settings = document["verdict"], document["settings"]
    evidence = verdict["evidence"]
    if evidence is None:
        return
    level = 100 * (1 - verdict["ledger"]["alpha"] / 2)
    yield (
        f"On the same documents it saves {evidence['mean_improvement_bpb']:+.4f} bits per byte, "
        f"and with chance taken off {evidence['lower_bound_bpb']:+.4f} at the least; more than "
        f"{settings['margin_bpb']} are asked for."
    )
    yield (
        f"How certain: over all rounds for ever, such a bound is right in {level:g} % of cycles."
    )
    for name, saved in sorted(verdict["strata"].items(), key=lambda pair: pair[1]):
        yield f"   in {name}: {saved:+.4f} (below -{settings['stratum_veto_bpb']} vetoes)"


def _not_worse(document: Document) -> Iterator[str]:
    verdict, settings = document["verdict"], document["settings"]
    evidence, cloze = verdict["against_generator"], verdict["cloze"]
    is_without = _is_without_generator(document["given"])
    by_bits, by_gaps = (
        ("counting alone", "a count of byte triples")
        if is_without
        else ("the generator", "the generator")
    )
    if evidence is not None:
        yield (
            f"Beside {by_bits} it saves {evidence['mean_improvement_bpb']:+.4f}, at the least "
            f"{evidence['lower_bound_bpb']:+.4f}; not below -{settings['margin_bpb']} is asked for."
        )
    if cloze is not None:
        yield (
            f"Of {cloze['items']} gaps in real text, {cloze['only_candidate']} were filled rightly "
            f"by the candidate alone and {cloze['only_generator']} by {by_gaps} alone; were "
            f"they equally good, so many losses would come about with a chance of "
            f"{cloze['p_worse']:.2g}."
        )


def _teaches(document: Document) -> Iterator[str]:
    compared = document["verdict"].get("teaching")
    if compared is None:
        return
    beside = {Arm.GENERATOR: "the generator's", Arm.REAL: "real text alone"}[compared["theirs"]]
    yield from _arms(compared, "its text", beside, document)
    yield (
        f"So few and so small students would show a true loss of {compared['detectable_bpb']:.4f} "
        f"bits per byte with a chance of 80 %; text as good as the other's is taken for worse in "
        f"{100 * ALPHA:g} % of cases."
    )


def _preferred(document: Document) -> Iterator[str]:
    """Yield how reliable the judge was, and whose answers it preferred."""
    found = document["verdict"]["tie_break"]
    trial, preference = found["trial"], found["preference"]
    if trial is None:
        return
    kinds = ", ".join(
        f"{right} of {pairs} {kind}" for kind, (pairs, right) in trial["right_by_kind"].items()
    )
    answers = 2 * trial["pairs"]
    yield (
        f"First the judge {found['judge']} was tried on {trial['pairs']} pairs of a real text and "
        f"a spoilt one, each in both orders: {trial['right']} right ({kinds}), "
        f"{trial['wrong']} wrong, {trial['inconsistent']} contradicted; {trial['named_first']} of "
        f"its {answers} answers named what was shown first, {trial['unreadable']} named nothing."
    )
    yield (
        f"Were it right in {_percent(LEAST_RIGHT[0] / LEAST_RIGHT[1])}, so many or more would be "
        f"right with a chance of {trial['p']:.2g}; above {TRIAL_ALPHA} it isn't heard."
    )
    if preference is None:
        return
    yield (
        f"Then it compared what both students wrote, without names and in both orders: of "
        f"{preference['pairs']} pairs from {preference['clusters']} sources the candidate won "
        f"{preference['wins']} and lost {preference['losses']}; {preference['ties']} were ties."
    )
    yield (
        f"Were it nothing to the judge who wrote, such a balance or a better one would come about "
        f"with a chance of {preference['p']:.2g}; {preference['alpha']:.2g} is the most that is "
        f"taken for a preference. A source falls to the candidate with a chance between "
        f"{preference['lower_bound']:.2f} and {preference['upper_bound']:.2f}."
    )
    yield "Whatever a judge says, the last student stays the one to beat."


def _arms(compared: Document, ours: str, theirs: str, document: Document) -> Iterator[str]:
    """Yield the bits per byte of each pair of small students, and their training text."""
    runs = {(run["arm"], run["seed"]): run for run in document["verdict"].get("proxies", ())}
    first = runs[compared["ours"], compared["seeds"][0]]
    yield (
        f"Students of {first['parameters']:,} parameters learned from {first['tokens']:,} tokens "
        f"each, {first['synthetic_share']:.1%} of their text was generated, and were scored on "
        f"{first['documents']} real documents:"
    )
    pairs = zip(compared["seeds"], compared["ours_bpb"], compared["theirs_bpb"], strict=True)
    for seed, own, other in pairs:
        yield f"   seed {seed}: {own:.4f} with {ours}, {other:.4f} with {theirs}"


def _control(document: Document) -> Iterator[str]:
    """Yield whether this round's synthetic text helped, where there was any."""
    compared = document["verdict"].get("control")
    share = document["given"].get("synthetic_share")
    wrote = compared is not None or not _is_without_generator(document["given"])
    if share is not None and wrote:
        yield f"Synthetic share: {share}."
    if compared is None:
        return
    yield "Did this round's synthetic text help? Small students with it beside real text alone:"
    yield from (f"   {line}" for line in _arms(compared, "it", "real text alone", document))
    lower, upper = compared["lower_bound_bpb"], compared["upper_bound_bpb"]
    shown = "it helped" if lower > 0 else "it harmed" if upper < 0 else "neither was shown"
    yield (
        f"It saves them {compared['gain_bpb']:+.4f} bits per byte, between {lower:+.4f} and "
        f"{upper:+.4f}: {shown}."
    )


def _needed(document: Document) -> Iterator[str]:
    verdict = document["verdict"]
    if _knows_less_than_counting(verdict):
        yield (
            "What would have been needed: more training. It knows this text less than a count of "
            "tokens does, so it was trained for too few steps, or on too little text; more text "
            "held out wouldn't change that."
        )
        return
    reach, evidence = verdict["reach"], verdict["evidence"]
    if reach is None or evidence is None or not evidence["standard_error_bpb"]:
        return
    yield (
        f"What would have been needed: this text shows a true gain of "
        f"{reach['detectable_bpb']:.4f} bits per byte or more with a chance of 80 %. A gain of "
        f"{reach['wanted_bpb']:.4f} would take about {counted(reach['documents'], 'document')} of "
        f"{counted(reach['clusters'], 'source')}."
    )


def _knows_less_than_counting(verdict: Document) -> bool:
    found, unigram = verdict["val_bpb"], verdict["unigram_bpb"]
    return found is not None and unigram is not None and found > unigram


def _ledger(verdict: Document) -> Iterator[str]:
    ledger = verdict["ledger"]
    yield (
        f"Chances of a wrong promotion: this was look {ledger['look']} at the held-out text; it "
        f"may spend {_percent(ledger['this_look'])} of {_percent(ledger['alpha'])}, those before "
        f"it spent {_percent(ledger['spent_before'])}, and {_percent(ledger['left'])} are left."
    )


def _vault(verdict: Document) -> Iterator[str]:
    vault = verdict["vault"]
    if vault is None:
        return
    text = (
        f"in the vault, which nobody looks at, it saves {vault['improvement_bpb']:+.4f} on "
        f"{vault['documents']:,} documents; on {vault['known_part']} "
        f"{vault['known_improvement_bpb']:+.4f}"
    )
    if vault["is_alarm"]:
        yield (
            f"ALARM: {text}. The text that is looked at seems over-fitted: hold out more, and "
            f"don't trust small gains."
        )
    else:
        yield f"Over-fitted? No: {text}."


def _answers(verdict: Document) -> Iterator[tuple[Question, Document]]:
    for question in Question:
        if question in verdict["questions"]:
            yield question, verdict["questions"][question]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _bpb(value: float | None) -> str:
    return "none  " if value is None else f"{value:.4f}"


def _beyond_base(document: Document) -> Iterator[str]:
    evidence = document["verdict"]["against_base"]
    if evidence is not None:
        yield (
            f"Beside the model that the cycle began with it saves "
            f"{evidence['mean_improvement_bpb']:+.4f} bits per byte, at the least "
            f"{evidence['lower_bound_bpb']:+.4f}; more than {document['settings']['margin_bpb']} "
            "are asked for."
        )


def _keeps(document: Document) -> Iterator[str]:
    found = document["verdict"]["forgetting"]
    yield (
        f"Scored on {found['documents']} passages of text that ships with Jupiter and isn't of the "
        "domain; gate.max_forgetting in the domain's file says how much may be forgotten."
    )


_NUMBERS = {
    Question.SANE: _sane,
    Question.BEYOND_BASE: _beyond_base,
    Question.KEEPS: _keeps,
    Question.BETTER: _better,
    Question.NOT_WORSE: _not_worse,
    Question.PREFERRED: _preferred,
    Question.TEACHES: _teaches,
}
