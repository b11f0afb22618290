"""The choice of a round's samples for the report: generated text with its source, kept and dropped.

Owns the choice: the samples with the smallest ids. An id is a hash, so the choice is random and
reproducible. Doesn't know how they are shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jupiterd.cycle.data.lineage import Sample
from jupiterd.errors import CorruptArtifactError
from jupiterd.store.sample_lookup import find_samples, read_sample, stored_drops, stored_samples

SHOWN = 5
LOOKED_AT = 5000
"""The highest number of generated samples that are read."""


@dataclass(frozen=True)
class ShownSample:
    """One sample, with its source and the reason if it was dropped."""

    sample: Sample
    parent: Sample | None
    """The sample that it was made from; None: it is real, or its source isn't here."""
    reason: str = ""
    """Why it was dropped; empty: it was kept."""


@dataclass(frozen=True)
class Chosen:
    """The chosen samples of a round."""

    round: int
    retained: tuple[ShownSample, ...] = ()
    """Synthetic samples."""
    dropped: tuple[ShownSample, ...] = ()
    """Synthetic samples."""
    dropped_real: tuple[ShownSample, ...] = ()
    is_readable: bool = True
    """Whether all folders could be read."""


def choose(folders: Mapping[str, Any] | None) -> Chosen | None:
    """Return some samples of the folders that the daemon names; None: it names none."""
    if folders is None:
        return None
    retained, dropped, generated, parents = (
        [Path(each) for each in folders.get(name) or ()]
        for name in ("kept", "dropped", "samples", "parents")
    )
    number = int(folders["round"])
    try:
        drops = sorted(
            (pair for folder in dropped for pair in stored_drops(folder)),
            key=lambda pair: pair[0].id,
        )
        places = [*parents, *retained]
        return Chosen(
            number,
            tuple(islice(_retained(generated, retained, places), SHOWN)),
            tuple(islice(_dropped(drops, places), SHOWN)),
            tuple(_one_of_each_reason(drops)),
        )
    except CorruptArtifactError:
        return Chosen(number, is_readable=False)


def _retained(
    generated: Iterable[Path], retained: list[Path], places: list[Path]
) -> Iterator[ShownSample]:
    """Yield the generated samples that are also among the kept ones."""
    found = islice((sample for folder in generated for sample in stored_samples(folder)), LOOKED_AT)
    for sample in sorted(found, key=lambda sample: sample.id):
        if _find(retained, sample.id) is not None:
            yield ShownSample(sample, _parent(sample, places))


def _dropped(drops: Iterable[tuple[Sample, str]], places: list[Path]) -> Iterator[ShownSample]:
    for sample, reason in drops:
        if sample.kind == "synthetic":
            yield ShownSample(sample, _parent(sample, places), reason)


def _one_of_each_reason(drops: Iterable[tuple[Sample, str]]) -> list[ShownSample]:
    """Return the first real sample of each reason, for at most SHOWN reasons."""
    first: dict[str, ShownSample] = {}
    for sample, reason in drops:
        if sample.kind == "real":
            first.setdefault(reason, ShownSample(sample, None, reason))
    return list(first.values())[:SHOWN]


def _parent(sample: Sample, places: list[Path]) -> Sample | None:
    return _find(places, sample.parents[0]) if sample.parents else None


def _find(folders: Iterable[Path], sample_id: str) -> Sample | None:
    for folder in folders:
        for place in find_samples(folder, sample_id, 1):
            return read_sample(folder, place)
    return None
