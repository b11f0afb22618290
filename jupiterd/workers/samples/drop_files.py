"""The files of what was left out: some texts of each reason, and beside each why.

Owns their form, and how much of a text is kept; filters and generators write the same. Doesn't know
which texts are kept, or any reason.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from jupiterd.cycle.base.drop_reason import DROP_REASONS_FILE
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.filters import SCORE_DIGITS
from jupiterd.workers.samples.sample_file import LineWriter, SampleWriter

STORED_OF_REASON: Final = 20
STORED_CHARS: Final = 16_384
"""A longer text is cut here, for it is to be looked at; its id stays that of the whole."""


class Why(Protocol):
    """Why one text is left out."""

    @property
    def reason(self) -> str | None:
        """Its name."""
        ...

    @property
    def measure(self) -> str:
        """What was measured, such as `words`; empty: nothing was counted."""
        ...

    @property
    def value(self) -> float:
        """How much that was."""
        ...

    @property
    def limit(self) -> float:
        """The least or the most that it could have been, whichever it missed."""
        ...


def shortened(sample: Sample) -> Sample:
    """Return a sample with as much of its text as is kept."""
    return replace(sample, text=sample.text[:STORED_CHARS])


def write_drops(folder: Path, rows: Iterable[tuple[Sample, Why]]) -> None:
    """Write texts, each with why it is left out, in the order in which they come."""
    with SampleWriter(folder) as samples, LineWriter(folder / DROP_REASONS_FILE) as reasons:
        for sample, why in rows:
            samples.add(sample)
            reasons.write(_line(sample, why))


def _line(sample: Sample, why: Why) -> str:
    fields: dict[str, str | float] = {
        "id": sample.id,
        "kind": sample.kind,
        "reason": str(why.reason),
        "source_uri": sample.source_uri,
    }
    if why.measure:
        value = round(why.value, SCORE_DIGITS)
        fields |= {"measure": why.measure, "value": value, "limit": why.limit}
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
