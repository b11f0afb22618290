"""Which held-out documents are scored, and how much of each.

Owns the choice: once each, neither tiny nor endless, not too many of one cluster, every n-th for
each piece of the work. Doesn't know models.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.data.split import held_out_part


@dataclass(frozen=True)
class ScoringLimits:
    """What of the held-out text is scored."""

    min_document_bytes: int
    max_document_bytes: int
    max_cluster_documents: int


@dataclass(frozen=True)
class ScoredDocument:
    """A held-out text, cut to what is scored."""

    id: str
    """BLAKE3 of the whole text."""
    cluster: str
    stratum: str
    """The kind of source it came from."""
    text: str
    size_bytes: int
    part: str
    """The part of the holdout that it is of."""


def choose_documents(
    samples: Iterable[Sample], limits: ScoringLimits, piece: int, pieces: int
) -> list[ScoredDocument]:
    """Return the documents of one piece; over all pieces each is chosen once, whoever chooses.

    The order is that of the texts' hashes: chance to look at, so that pieces are alike, and fixed.
    """
    unique = {text_hash(sample.text): sample for sample in samples}
    of_cluster: Counter[str] = Counter()
    chosen: list[ScoredDocument] = []
    for digest, sample in sorted(unique.items()):
        document = _document(digest, sample, limits)
        if document.size_bytes < limits.min_document_bytes:
            continue
        of_cluster[sample.cluster_id] += 1
        if of_cluster[sample.cluster_id] <= limits.max_cluster_documents:
            chosen.append(document)
    return chosen[piece::pieces]


def cut_text(text: str, max_bytes: int) -> str:
    """Return the beginning of the text, at most `max_bytes` of UTF-8, ending between characters."""
    return text.encode()[:max_bytes].decode("utf-8", "ignore")


def _document(digest: str, sample: Sample, limits: ScoringLimits) -> ScoredDocument:
    text = cut_text(sample.text, limits.max_document_bytes)
    stratum = sample.collector.partition("@")[0]
    part = held_out_part(sample.split)
    return ScoredDocument(digest, sample.cluster_id, stratum, text, len(text.encode()), part)
