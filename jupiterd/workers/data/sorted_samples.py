"""Samples written in the order of their ids, however many there are.

Owns the sorting, on disk: a folder in this order can be merged with others as a stream. Doesn't
know what the samples mean.
"""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Self

from jupiterd.cycle.data.lineage import Sample
from jupiterd.workers.samples.sample_file import SampleWriter, read_samples


class SortedSampleWriter:
    """Takes samples in any order; at the end they are written by id. A context manager."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        # Beside the output, where there is room for it.
        self._spool = tempfile.TemporaryFile(dir=folder.parent)  # noqa: SIM115 - closed in __exit__
        self._places: list[tuple[str, int, int]] = []

    def add(self, sample: Sample) -> None:
        """Take one sample."""
        line = sample.to_json().encode()
        self._places.append((sample.id, self._spool.tell(), len(line)))
        self._spool.write(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._spool:
            if kind is None:
                self._write()

    def _write(self) -> None:
        with SampleWriter(self._folder) as writer:
            for sample_id, start, length in sorted(self._places):
                self._spool.seek(start)
                writer.add_line(sample_id, self._spool.read(length).decode())


def merged(folders: Iterable[Path]) -> Iterator[Sample]:
    """Yield the samples of folders in this order, by id, as a stream."""
    return heapq.merge(*map(read_samples, folders), key=attrgetter("id"))
