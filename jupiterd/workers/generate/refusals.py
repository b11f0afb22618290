"""The answers that became no sample, some of each reason kept for people to look at.

Owns which are kept; their files are those of the filters' drops, so that what a generator wrote in
vain is shown beside what filters dropped. Doesn't know why anything is refused.

Of each reason those with the smallest ids are kept. An id is a hash, so that is a fair draw, and
the same one whoever did the work.
"""

from collections import defaultdict
from pathlib import Path

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.templates.refusal import Refusal, RefusedAnswer
from jupiterd.workers.samples.drop_files import STORED_OF_REASON, shortened, write_drops

Entry = tuple[str, Sample, RefusedAnswer]


class RefusedAnswers:
    """Answers that were refused."""

    def __init__(self) -> None:
        self._entries: dict[Refusal, list[Entry]] = defaultdict(list)

    def add(self, sample: Sample, refused: RefusedAnswer) -> None:
        """Keep what would have become a sample, if it is among the first of its reason."""
        short = shortened(sample)
        entries = self._entries[refused.reason]
        if any(
            stored_id == sample.id for stored_id, _, _ in entries
        ):  # of empty ones one tells all
            return
        entries.append((sample.id, short, refused))
        entries.sort(key=lambda entry: entry[0])
        del entries[STORED_OF_REASON:]

    def write(self, folder: Path) -> None:
        """Write what is kept, by reason and id."""
        ranked = (self._entries[reason] for reason in sorted(self._entries))
        write_drops(folder, ((sample, why) for entries in ranked for _, sample, why in entries))
