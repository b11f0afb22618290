"""What people have purged, by its address or by its source's name: neither requested nor read.

Owns the look at each address, how often one was left out, and the outputs of a source that was
purged by its name, all empty. What was made of a purged text is found later (`merge_batches`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT, NOT_COLLECTED_COUNT
from jupiterd.cycle.data.purge import purged_at
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.collect.previous_round import write_state
from jupiterd.workers.data.skips import SkipLog, SkipReason
from jupiterd.workers.samples.sample_file import SampleWriter


class PurgedAddresses:
    """Says of each address whether it is left out."""

    def __init__(self, purged: Iterable[str] = ()) -> None:
        self._purged = tuple(sorted(purged))
        self._left_out: Counter[str] = Counter()

    def has(self, uri: str) -> bool:
        """Say whether what lies there was purged."""
        return bool(purged_at(uri, self._purged))

    def leaves_out(self, uri: str, skips: SkipLog) -> bool:
        """Say the same of a document, and record where it is left out."""
        source = purged_at(uri, self._purged)
        if source:
            self._left_out[source] += 1
            skips.add(uri, SkipReason.PURGED)
        return bool(source)

    def counts(self) -> dict[str, float]:
        """Return how many were left out for each purge that met any."""
        return {f"{LEFT_OUT_COUNT}{source}": n for source, n in sorted(self._left_out.items())}


def not_collected(source: str, output: Path, of_text: Sequence[str]) -> TaskFinished:
    """Write empty outputs for a source, with the count that says so in the ledger.

    of_text: the outputs that hold samples
    """
    for name in of_text:
        with SampleWriter(output / name):
            pass
    with SkipLog(output / "skipped"):
        write_state(output / "state", ())
    names = (*of_text, "state", "skipped")
    return TaskFinished({name: name for name in names}, {NOT_COLLECTED_COUNT + source: 1})
