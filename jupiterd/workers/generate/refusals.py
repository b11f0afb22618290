"""The answers that became no sample, some of each reason kept for people to look at.

Owns which are kept, and their files: those of `drops`, so that what a generator wrote in vain is
shown beside what filters dropped. Doesn't know why anything is refused.

Of each reason those with the smallest ids are kept. An id is a hash, so that is a fair draw, and
the same one whoever did the work.
"""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from jupiterd.cycle.drop_reason import DROP_REASONS_FILE
from jupiterd.cycle.lineage import Sample
from jupiterd.cycle.templates.refusal import Refusal, Refused
from jupiterd.workers.data.sample_file import LineWriter, SampleWriter

KEPT_OF_REASON = 20
KEPT_CHARS = 16_384
"""A longer text is cut here, for it is to be looked at; its id stays that of the whole."""
DIGITS = 4

Entry = tuple[str, Sample, Refused]


class Refusals:
    """Answers that were refused."""

    def __init__(self) -> None:
        self._entries: dict[Refusal, list[Entry]] = defaultdict(list)

    def add(self, sample: Sample, refused: Refused) -> None:
        """Keep what would have become a sample, if it is among the first of its reason."""
        short = replace(sample, text=sample.text[:KEPT_CHARS])
        entries = self._entries[refused.reason]
        if any(kept_id == sample.id for kept_id, _, _ in entries):  # of empty ones one tells all
            return
        entries.append((sample.id, short, refused))
        entries.sort(key=lambda entry: entry[0])
        del entries[KEPT_OF_REASON:]

    def write(self, folder: Path) -> None:
        """Write what is kept, by reason and id."""
        with SampleWriter(folder) as samples, LineWriter(folder / DROP_REASONS_FILE) as reasons:
            for reason in sorted(self._entries):
                for _, sample, refused in self._entries[reason]:
                    samples.add(sample)
                    reasons.write(_line(sample, refused))


def _line(sample: Sample, refused: Refused) -> str:
    fields: dict[str, str | float] = {
        "id": sample.id,
        "kind": sample.kind,
        "reason": str(refused.reason),
        "source_uri": sample.source_uri,
    }
    if refused.measure:
        value = round(refused.value, DIGITS)
        fields |= {"measure": refused.measure, "value": value, "limit": refused.limit}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
