"""What the filters dropped: all of it counted, some of it kept for people to look at.

Owns which samples are kept, and their files. Doesn't know why anything is dropped.

Of each reason those with the smallest ids are kept. An id is a hash, so that is a fair draw, and
the same one in whatever order and on however many machines the work was done.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path

from jupiterd.cycle.base.drop_reason import DROP_REASONS_FILE, DropReason
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.text_rules.judgement import Judgement
from jupiterd.errors import Bug
from jupiterd.workers.samples.drop_files import STORED_OF_REASON, shortened, write_drops
from jupiterd.workers.samples.sample_file import read_lines, read_samples

Entry = tuple[str, str, Sample, Judgement]


class Drops:
    """Samples that were dropped."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter({"dropped": 0})
        """`dropped`, and `dropped.<reason>` for each reason that there was."""
        self._entries: dict[DropReason, list[Entry]] = {}

    def add(self, sample: Sample, reason: DropReason, judgement: Judgement | None = None) -> None:
        """Count one sample, and keep it if it is among the first of its reason.

        Args:
            sample: what is dropped.
            reason: why.
            judgement: where the rules dropped it, with what was measured.
        """
        self.count(reason)
        self._keep(sample, judgement or Judgement(reason))

    def count(self, reason: DropReason) -> None:
        """Count one sample of which nothing may be kept."""
        self.counts.update(("dropped", f"dropped.{reason}"))
        self._entries.setdefault(reason, [])

    def add_examples(self, found: Iterable[tuple[Sample, Judgement]]) -> None:
        """Keep of what another one kept; it has been counted there."""
        for sample, judgement in found:
            self._keep(sample, judgement)

    def reasons(self) -> str:
        """Return the reasons that there were, for people."""
        return ", ".join(sorted(self._entries))

    def write(self, folder: Path) -> None:
        """Write what is kept, by reason and id."""
        ranked = (_first(self._entries[reason]) for reason in sorted(self._entries))
        write_drops(folder, ((each[2], each[3]) for entries in ranked for each in entries))

    def _keep(self, sample: Sample, judgement: Judgement) -> None:
        if judgement.reason is None:
            raise Bug(f"sample {sample.id[:8]} is kept and dropped")
        entries = self._entries.setdefault(judgement.reason, [])
        short = shortened(sample)
        entries.append((sample.id, short.to_json(), short, judgement))
        if len(entries) > 2 * STORED_OF_REASON:
            entries[:] = _first(entries)


def _first(entries: list[Entry]) -> list[Entry]:
    return sorted(entries, key=itemgetter(0, 1))[:STORED_OF_REASON]


def read_drops(folder: Path) -> Iterator[tuple[Sample, Judgement]]:
    """Yield the samples of a folder of drops, each with why; older ones have no measure."""
    rows = (json.loads(line) for line in read_lines(folder / DROP_REASONS_FILE))
    for sample, row in zip(read_samples(folder), rows, strict=True):
        yield (
            sample,
            Judgement(
                DropReason(row["reason"]),
                {},
                str(row.get("measure", "")),
                float(row.get("value", 0.0)),
                float(row.get("limit", 0.0)),
            ),
        )
