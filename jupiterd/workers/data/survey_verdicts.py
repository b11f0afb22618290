"""What the rules of a cycle make of the documents that a survey read, and of those it didn't.

Owns judging a sample, and what it says of the rest. Doesn't know how anything is read.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from jupiterd.cycle.data.clusters import Path as ClusterPath
from jupiterd.cycle.data.clusters import cluster_path
from jupiterd.cycle.data.survey import ReadDocument, SourceSurvey, kept_shares, thinned
from jupiterd.cycle.lineage import Sample, text_hash
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.workers.data.clean import Asked, judge
from jupiterd.workers.data.cleaned_document import with_kind
from jupiterd.workers.data.collectors.collector import Document
from jupiterd.workers.data.language_id import main_language_of
from jupiterd.workers.data.near_duplicates import NearDuplicates
from jupiterd.workers.data.survey_sample import Looked, Unread, ending_of

NO_TIME = "not counted: there was no time to read any of it"

NEAR_DUPLICATE = "near-duplicate"

CODE_SHARE = 0.95
"""Where so many of the documents are code of one language, the domain is of that language."""


MOST_ASKED = 40
"""Of each source so many documents are asked for their language."""

LEAST_JUDGED = 40
"""So many are judged however late it is, for on a busy machine time is up before it begins."""


@dataclass(frozen=True)
class Rules:
    """What a domain asks of its text, as its file says."""

    language: str
    """Empty: it is to be told from the text."""
    license_policy: Mapping[str, Any]
    rules_off: Sequence[str]
    """Names of rules that aren't asked."""
    min_document_bytes: int
    max_cluster_documents: int

    @classmethod
    def from_plain(cls, told: Mapping[str, Any]) -> Self:
        """Return what a request says."""
        return cls(**told)

    @property
    def asked(self) -> Asked:
        """Return what is asked of each text, as a cycle asks it."""
        return Asked.of_params(asdict(self))

    def of_language(self, language: str) -> Self:
        """Return the same for text in that language."""
        return replace(self, language=language)


@dataclass(frozen=True)
class Verdicts:
    """What becomes of one source."""

    survey: SourceSurvey
    scored_paths: list[ClusterPath]
    """Of every document that would be kept and is long enough to be scored."""


@dataclass(frozen=True)
class JudgedDocument:
    """A document, and why it would be left out."""

    document: Document
    sample: Sample
    reason: str
    """Empty: it is kept."""

    @property
    def kept_bytes(self) -> int:
        """Return the size of its text; 0 where it is left out."""
        return 0 if self.reason else len(self.sample.text.encode())

    @property
    def path(self) -> ClusterPath:
        """Return the clusters that it is of."""
        return cluster_path(self.document.uri, self.document.cluster_id)


def judged(looked: Looked, rules: Rules, until_s: float) -> Verdicts:
    """Return what would be kept of a source.

    until_s: what isn't judged by then, on the clock of this process, counts as not read
    """
    source = looked.source
    if looked.why_not:
        told, is_empty = looked.why_not, looked.is_empty
        survey = SourceSurvey(source.name, source.kind, why_not=told, is_empty=is_empty)
        return Verdicts(survey, [])
    found = _without_copies(_judged_in_time(looked.read, rules, until_s))
    if not found and not looked.skipped:
        return Verdicts(SourceSurvey(source.name, source.kind, why_not=NO_TIME), [])
    unread = [*looked.unread, *map(Unread.of, looked.read[len(found) :])]
    return _extrapolated(looked, found, unread, rules.min_document_bytes)


def _judged_in_time(
    documents: Sequence[Document], rules: Rules, until_s: float
) -> list[JudgedDocument]:
    """Judge one after the other, some of them however late it is."""
    asked = rules.asked
    found: list[JudgedDocument] = []
    for number, document in enumerate(documents):
        if number >= LEAST_JUDGED and time.monotonic() > until_s:
            break
        sample = _sample(document, rules.language)
        found.append(JudgedDocument(document, sample, _reason(sample, asked)))
    return found


def _without_copies(found: Sequence[JudgedDocument]) -> list[JudgedDocument]:
    """Return the same, those that are nearly an earlier kept one left out."""
    near = NearDuplicates(is_code=False)
    for each in found:
        near.add("" if each.reason else each.sample.text)  # nothing is near to an empty text
    return [
        each if group == number else replace(each, reason=NEAR_DUPLICATE)
        for number, (each, group) in enumerate(zip(found, near.groups(), strict=True))
    ]


def _extrapolated(
    looked: Looked, found: Sequence[JudgedDocument], unread: Sequence[Unread], least_bytes: int
) -> Verdicts:
    """Return what all of a source comes to, if what wasn't read is like what was."""
    kept = [each for each in found if not each.reason]
    read = [ReadDocument("", 0)] * sum(looked.skipped.values())
    read += [
        ReadDocument(ending_of(each.document.name or each.document.uri), each.kept_bytes)
        for each in found
    ]
    others = thinned([each.ending for each in unread], kept_shares(read))
    paths = [each.path for each in kept if each.kept_bytes >= least_bytes]
    scored = len(paths) / len(kept) if kept else 0.0
    paths += [unread[others[n]].path for n in thinned([""] * len(others), {"": scored})]
    documents = len(kept) + len(others)
    size = sum(each.kept_bytes for each in kept)
    reasons = Counter(looked.skipped) + Counter(each.reason for each in found if each.reason)
    survey = SourceSurvey(
        name=looked.source.name,
        kind=looked.source.kind,
        found=looked.found,
        read=len(read),
        kept=len(kept),
        documents=documents,
        bytes=size * documents // len(kept) if kept else 0,
        is_at_least=looked.is_at_least,
        dropped=dict(reasons.most_common()),
        kinds=dict(Counter(each.sample.document_kind for each in kept).most_common()),
    )
    return Verdicts(survey, paths)


def main_language(looked: Iterable[Looked]) -> str:
    """Return what most of the text is in, or `code:` and a language where hardly anything else is.

    Code is judged by its own rules whatever the domain's language is; prose only in a natural one.
    """
    natural: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for document in (each for one in looked for each in one.read[:MOST_ASKED]):
        sample = _sample(document)
        form = DocumentForm.parse(sample.document_kind)
        if form.kind is DocumentKind.CODE:
            code[f"code:{form.syntax}"] += 1
        elif form.kind is not DocumentKind.DATA:
            natural[main_language_of(sample.text)] += 1
    top, count = next(iter(code.most_common(1)), ("", 0))
    if count and count >= CODE_SHARE * (code.total() + natural.total()):
        return top
    return next(iter(natural.most_common(1)), ("en", 0))[0] or "en"


def _reason(sample: Sample, asked: Asked) -> str:
    reason = judge(sample, asked).reason
    return "" if reason is None else str(reason)


def _sample(document: Document, language: str = "") -> Sample:
    """Return a document as collecting makes a sample of it, as far as rules look at it.

    language: the domain's; empty: not known yet
    """
    name = document.uri if document.name is None else document.name
    read = Sample(
        id=text_hash(document.text),
        text=document.text,
        kind="real",
        depth=0,
        parents=(),
        cluster_id=document.cluster_id,
        source_uri=document.uri,
        revision=document.revision,
        license=document.license,
        collector="survey",
        fetched_at="",
        language=language,
        extractor=document.extractor,
    )
    return with_kind(read, name)
