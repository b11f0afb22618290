"""Single samples and documents out of folders of millions, without reading the rest.

Owns the way from a folder to the bytes that the indexes need. Doesn't know what makes such a
folder, or who asks.
"""

import json
import mmap
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import zstandard

from jupiterd.cycle.base.drop_reason import DROP_REASONS_FILE
from jupiterd.cycle.data.document_index import DOCUMENTS_FILE, DocumentIndex, DocumentSpan
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.sample_index import (
    INDEX_FILE,
    SAMPLES_FILE,
    SampleIndex,
    SamplePosition,
    line_in,
    lines_in,
)
from jupiterd.errors import CorruptArtifactError

Row = Mapping[str, Any]

MAX_DROPPED = 1000
"""So many of what was dropped are looked through; a few of each reason are kept."""


def find_samples(folder: Path, prefix: str, most: int = 16) -> list[SamplePosition]:
    """Return up to `most` samples whose id begins so; none where the folder has no index.

    Raises:
        CorruptArtifactError: the index is damaged.
    """
    with _mapped(folder / INDEX_FILE) as data:
        return [] if data is None else SampleIndex(data).find(prefix, most)


def read_sample(folder: Path, place: SamplePosition) -> Sample:
    """Return the sample that stands there.

    Raises:
        CorruptArtifactError: what stands there is none.
    """
    try:
        with (folder / SAMPLES_FILE).open("rb") as file:
            file.seek(place.first)
            frame = file.read(place.end - place.first)
    except OSError as error:
        raise CorruptArtifactError(f"{SAMPLES_FILE} can't be read") from error
    return Sample.from_json(line_in(frame, place.line_at))


def stored_samples(folder: Path) -> Iterator[Sample]:
    """Yield all samples of a folder in their order.

    Raises:
        CorruptArtifactError: a file is damaged.
    """
    try:
        with _mapped(folder / INDEX_FILE) as data, (folder / SAMPLES_FILE).open("rb") as file:
            for first, end in SampleIndex(memoryview(b"") if data is None else data).frames():
                file.seek(first)
                yield from map(Sample.from_json, lines_in(file.read(end - first)))
    except OSError as error:
        raise CorruptArtifactError(f"{SAMPLES_FILE} can't be read") from error


def stored_drops(folder: Path) -> Iterator[tuple[Sample, str]]:
    """Yield the samples of a folder of drops, each with its reason.

    Raises:
        CorruptArtifactError: a file is damaged.
    """
    for sample, row in stored_drop_rows(folder):
        yield sample, str(row["reason"])


def stored_drop_rows(folder: Path) -> Iterator[tuple[Sample, Row]]:
    """Yield the samples of a folder of drops, each with all that is told of it, `reason` at least.

    Raises:
        CorruptArtifactError: a file is damaged.
    """
    rows = stored_rows(folder / DROP_REASONS_FILE)
    yield from zip(stored_samples(folder), rows, strict=False)


def stored_rows(file: Path) -> list[Row]:
    """Return the rows of a file beside samples, each with its `reason`.

    Raises:
        CorruptArtifactError: it is damaged.
    """
    try:
        with file.open("rb") as opened:
            stream = zstandard.ZstdDecompressor().stream_reader(opened, read_across_frames=True)
            found: list[Row] = [json.loads(line) for line in stream.read().splitlines()]
        return [row for row in found if row["reason"] is not None]
    except (OSError, ValueError, KeyError, TypeError, zstandard.ZstdError) as error:
        raise CorruptArtifactError(f"{file.name} can't be read") from error


def some_samples(folder: Path, most: int) -> list[tuple[Sample, str]]:
    """Return a few samples of a folder, each with why it was dropped, or empty.

    The first ones have the smallest ids, which are hashes: a fair draw. Of what was dropped one of
    each reason comes first.

    Raises:
        CorruptArtifactError: a file is damaged.
    """
    if not (folder / DROP_REASONS_FILE).exists():
        return [(sample, "") for sample in islice(stored_samples(folder), most)]
    seen: Counter[str] = Counter()
    ranked: list[tuple[int, int, Sample, str]] = []
    for number, (sample, reason) in enumerate(islice(stored_drops(folder), MAX_DROPPED)):
        ranked.append((seen[reason], number, sample, reason))
        seen[reason] += 1
    ranked.sort(key=itemgetter(0, 1))
    return [(sample, reason) for _, _, sample, reason in ranked[:most]]


def document_ids(folder: Path) -> frozenset[str]:
    """Return the ids of all samples among the tokens of a folder of shards."""
    with _mapped(folder / DOCUMENTS_FILE) as data:
        if data is None:
            return frozenset()
        index = DocumentIndex(data)
        return frozenset(index.document(number).sample_id for number in range(index.documents))


def document_at(folder: Path, offset: int) -> tuple[DocumentSpan | None, int]:
    """Return the document of a token, and how many tokens there are.

    There is none beyond the stream, nor where nobody noted which sample a token comes from.
    """
    with _mapped(folder / DOCUMENTS_FILE) as data:
        if data is None:
            return None, 0
        index = DocumentIndex(data)
        return index.at(offset), index.tokens


def document_of(folder: Path, sample_id: str) -> DocumentSpan | None:
    """Return where a sample stands among the tokens of shards; None where it doesn't."""
    with _mapped(folder / DOCUMENTS_FILE) as data:
        return None if data is None else DocumentIndex(data).of(sample_id)


@contextmanager
def _mapped(path: Path) -> Generator[memoryview | None]:
    try:
        file = path.open("rb")
    except OSError:
        yield None
        return
    with file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # an empty file can't be mapped
            raise CorruptArtifactError(f"{path.name} can't be read") from error
    with mapped, memoryview(mapped) as data:
        yield data
