"""What the rules of a cycle make of the documents that a survey read, and of those it didn't.

Owns judging a sample, and what it says of the rest. Doesn't know how anything is read.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.retained_shares import (
    RARE,
    ReadDocument,
    UnreadCase,
    retained_shares,
    thinned,
)
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.domain.survey import SourceSurvey
from jupiterd.cycle.holdout.holdout_forecast import holdout_forecast
from jupiterd.cycle.holdout.holdout_plan import Collected
from jupiterd.cycle.holdout.holdout_rules import HoldoutRules
from jupiterd.cycle.holdout.verdict_check import Found
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.workers.data.clean.clean_batch import TextRules, judge
from jupiterd.workers.data.clean.language_id import main_language_of
from jupiterd.workers.data.collect.cleaned_document import Cleaning
from jupiterd.workers.data.collect.collected_sample import collected_sample
from jupiterd.workers.data.collectors.collector import CollectedDocument
from jupiterd.workers.data.dedup.collected_text import CollectedText
from jupiterd.workers.data.skips import MOST_NAMED, SkipReason, UnreadableError
from jupiterd.workers.data.survey.survey_sample import GRACE_S, Looked, Unread, ending_of
from jupiterd.workers.progress import Progress

NO_TIME = "not counted: there was no time to read any of it"

NEAR_DUPLICATE = "near-duplicate"

CODE_SHARE = 0.95
"""Where so many of the documents are code of one language, the domain is of that language."""


MOST_LANGUAGE_CHECKS = 40
"""Of each source so many documents are asked for their language."""

LATE_CHARS = 1 << 18
"""A text that is longer is passed over once time is up: forty books may take minutes."""

LEAST_JUDGED = 40
"""So many are judged however late it is, for on a busy machine time is up before it begins."""


@dataclass(frozen=True)
class SurveyRules:
    """What a domain asks of its text, as its file says."""

    language: str
    """Empty: it is to be told from the text."""
    license_policy: Mapping[str, Any]
    rules_off: Sequence[str]
    """Names of rules that aren't asked."""
    holdout: HoldoutRules

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return what a request says."""
        fields = dict(plain)
        return cls(holdout=HoldoutRules(**fields.pop("holdout")), **fields)

    @property
    def text_rules(self) -> TextRules:
        """Return what is asked of each text, as a cycle asks it."""
        return TextRules.of_params(
            {
                "language": self.language,
                "license_policy": self.license_policy,
                "rules_off": self.rules_off,
            }
        )

    def of_language(self, language: str) -> Self:
        """Return the same for text in that language."""
        return replace(self, language=language)


@dataclass(frozen=True)
class JudgedDocument:
    """A document, and why it would be left out."""

    document: CollectedDocument
    sample: Sample
    reason: str
    """Empty: it is kept."""

    @property
    def retained_bytes(self) -> int:
        """Return the size of its text; 0 where it is left out."""
        return 0 if self.reason else len(self.sample.text.encode())


@dataclass(frozen=True)
class JudgedSource:
    """What was judged of one source, in the order in which it was read."""

    looked: Looked
    judged: list[JudgedDocument]
    passed: Sequence[CollectedDocument] = ()
    """Too long for as late as it was."""

    @property
    def unread(self) -> list[Unread]:
        """Return what there was no time for."""
        late = self.looked.read[len(self.judged) + len(self.passed) :]
        return [*self.looked.unread, *map(Unread.of, [*self.passed, *late])]


def judged_in_time(
    looked: Looked, rules: SurveyRules, until_s: float, on_progress: Progress, clean: Cleaning
) -> JudgedSource:
    """Judge one document after the other, some short ones however late it is.

    Args:
        looked: what was read of a source.
        rules: the domain's.
        until_s: what isn't judged by then, on the clock of this process, counts as not read.
        on_progress: hears how many were judged, and of how many.
        clean: cleans a document's markup, and gives it up where that takes too long.
    """
    text_rules = rules.text_rules
    found: list[JudgedDocument] = []
    passed: list[CollectedDocument] = []
    for number, document in enumerate(looked.read):
        late_s = time.monotonic() - until_s
        is_late = late_s > 0
        if is_late and (number >= LEAST_JUDGED or late_s > GRACE_S):
            break
        if is_late and len(document.text) > LATE_CHARS:
            passed.append(document)
            continue
        sample, given_up = _sample(document, clean, rules.language, looked.source.name)
        found.append(JudgedDocument(document, sample, given_up or _reason(sample, text_rules)))
        on_progress(number + 1, len(looked.read), "judged")
    return JudgedSource(looked, found, passed)


def surveyed(
    sources: Sequence[JudgedSource], rules: SurveyRules
) -> tuple[tuple[SourceSurvey, ...], Sequence[Found]]:
    """Return what each source comes to, and what would be held out of all of them together.

    First what is likely, then what else may be (see `UnreadCase`), where something wasn't read.
    """
    text, places = _text_of(sources, rules)
    copies = _copies(text, places)
    own = [{place for number, place in copies if number == n} for n in range(len(sources))]
    pairs = list(zip(sources, own, strict=True))
    is_whole = not any(source.unread for source in sources)
    cases = [UnreadCase.LIKELY] if is_whole else list(UnreadCase)
    found = [holdout_forecast(_all_of(text, pairs, case), rules.holdout) for case in cases]
    return tuple(_survey(source, copies_of) for source, copies_of in pairs), found


def _all_of(
    text: CollectedText, pairs: Iterable[tuple[JudgedSource, Collection[int]]], case: UnreadCase
) -> list[Collected]:
    """Return what was read and kept, and what is taken to be kept of the rest."""
    documents = list(text.documents)
    for source, copies in pairs:
        first = len(documents)
        unread = _unread_retained(source, _found(source, copies), case)
        documents += [replace(each, group=first + n) for n, each in enumerate(unread)]
    return documents


Place = tuple[int, int]
"""The number of a source, and that of a document among those judged of it."""


def _text_of(
    sources: Sequence[JudgedSource], rules: SurveyRules
) -> tuple[CollectedText, Sequence[Place]]:
    """Return all kept text in the order in which a cycle sees it, and whence each text comes."""
    places = [
        (number, place)
        for number, source in enumerate(sources)
        for place, each in enumerate(source.judged)
        if not each.reason
    ]
    samples = {place: sources[place[0]].judged[place[1]].sample for place in places}
    places.sort(key=lambda place: (samples[place].id, place[0], samples[place].source_uri))
    text = CollectedText.of((samples[place] for place in places), is_code=is_code(rules.language))
    return text, places


def _copies(text: CollectedText, places: Sequence[Place]) -> set[Place]:
    """Return what is nearly an earlier text."""
    seen: set[int] = set()
    copies: set[Place] = set()
    for document, place in zip(text.documents, places, strict=True):
        if document.group in seen:
            copies.add(place)
        seen.add(document.group)
    return copies


def _found(source: JudgedSource, copies: Collection[int]) -> list[JudgedDocument]:
    """Return what was judged; copies: numbers of the documents that are copies of others."""
    return [
        replace(each, reason=NEAR_DUPLICATE) if number in copies else each
        for number, each in enumerate(source.judged)
    ]


def _unread_retained(
    source: JudgedSource, found: Sequence[JudgedDocument], case: UnreadCase
) -> list[Collected]:
    """Return what is taken to be kept of what wasn't read; sizes are those of what was."""
    unread, skipped = source.unread, sum(source.looked.skipped.values())
    if not unread or not (found or skipped):
        return []
    read = [ReadDocument(RARE, 0)] * skipped
    read += [ReadDocument(_ending(each), each.retained_bytes) for each in found]
    sizes: defaultdict[str, list[int]] = defaultdict(list)
    for each in read:
        if each.retained_bytes:
            sizes[each.name].append(each.retained_bytes)
            sizes[RARE].append(each.retained_bytes)
    others = thinned([each.ending for each in unread], retained_shares(read, case))
    return [
        Collected(unread[place].path, _size(sizes, unread[place].ending, number), 0)
        for number, place in enumerate(others)
    ]


def _size(sizes: Mapping[str, Sequence[int]], ending: str, number: int) -> int:
    """Return the size of one that was kept, of the same ending where there is any."""
    like = sizes.get(ending) or sizes.get(RARE) or [0]
    return like[number % len(like)]


def _ending(judged: JudgedDocument) -> str:
    return ending_of(judged.document.name or judged.document.uri)


def _survey(source: JudgedSource, copies: Collection[int]) -> SourceSurvey:
    """Return what all of a source comes to, if what wasn't read is like what was."""
    looked = source.looked
    name, kind = looked.source.name, looked.source.kind
    if looked.why_not:
        return SourceSurvey(name, kind, why_not=looked.why_not, is_empty=looked.is_empty)
    if not source.judged and not looked.skipped:
        return SourceSurvey(name, kind, why_not=NO_TIME)
    found = _found(source, copies)
    retained = [each for each in found if not each.reason]
    like = _unread_retained(source, found, UnreadCase.LIKELY)
    reasons = Counter(looked.skipped) + Counter(each.reason for each in found if each.reason)
    return SourceSurvey(
        name=name,
        kind=kind,
        found=looked.found,
        read=len(found) + sum(looked.skipped.values()),
        kept=len(retained),
        documents=len(retained) + len(like),
        bytes=sum(each.retained_bytes for each in retained) + sum(each.size_bytes for each in like),
        is_at_least=looked.is_at_least,
        dropped=dict(reasons.most_common()),
        kinds=dict(Counter(each.sample.document_kind for each in retained).most_common()),
        slow=_slow(source),
    )


def _slow(source: JudgedSource) -> tuple[str, ...]:
    """Return the first that took too long, to read or to clean."""
    given_up = (each for each in source.judged if each.reason == SkipReason.TIMED_OUT)
    named = [*source.looked.slow, *(each.document.uri for each in given_up)]
    return tuple(named[:MOST_NAMED])


def main_language(looked: Iterable[Looked], clean: Cleaning, until_s: float) -> str:
    """Return what most of the text is in, or `code:` and a language where hardly anything else is.

    Code is judged by its own rules whatever the domain's language is; prose only in a natural one.
    Long texts are asked last, and no more than one of them once time is up. Empty: nothing was read
    that tells.
    """
    natural: Counter[str] = Counter()
    code: Counter[str] = Counter()
    text_rules = [each for one in looked for each in one.read[:MOST_LANGUAGE_CHECKS]]
    for document in sorted(text_rules, key=lambda each: len(each.text) > LATE_CHARS):
        if natural and len(document.text) > LATE_CHARS and time.monotonic() > until_s:
            break
        sample, _ = _sample(document, clean)
        form = DocumentForm.parse(sample.document_kind)
        if form.kind is DocumentKind.CODE:
            code[f"code:{form.syntax}"] += 1
        elif form.kind is not DocumentKind.DATA:
            natural[main_language_of(sample.text)] += 1
    top, count = next(iter(code.most_common(1)), ("", 0))
    if count and count >= CODE_SHARE * (code.total() + natural.total()):
        return top
    known = (language for language, _ in natural.most_common() if language)
    return next(known, "en" if code else "")


def _reason(sample: Sample, text_rules: TextRules) -> str:
    reason = judge(sample, text_rules).reason
    return "" if reason is None else str(reason)


def _sample(
    document: CollectedDocument, clean: Cleaning, language: str = "", source: str = ""
) -> tuple[Sample, str]:
    """Return a document as collecting makes a sample of it, and why it would give it up, if so.

    language: empty: not known yet
    """
    build_sample = partial(collected_sample, document, "survey", language, source)
    try:
        return build_sample(clean)[0], ""
    except UnreadableError as error:
        return build_sample(lambda text, _: text)[0], str(error.reason)
