"""A look of some seconds at what a data set would hold out, before anything is started.

`python -m jupiterd.workers.data.survey.split_preview` reads a request in JSON on its standard input
and answers on its standard output. Owns where the look ends. Reads and splits as the task `prepare`
does; doesn't know who asks.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jupiterd.cycle.runs.run_settings import DataSettings
from jupiterd.errors import JupiterError
from jupiterd.workers.data.collect.text_files import PlacedText
from jupiterd.workers.data.extract.extraction import Extractor
from jupiterd.workers.data.pack.prepare_dataset import SAMPLE_BYTES, SourceReader
from jupiterd.workers.data.pack.prepared_split import read_first, split_of, without_secrets
from jupiterd.workers.data.skips import SkipCounts, SkipReason

MOST_NAMES = 3


def main() -> int:
    """Answer one request."""
    json.dump(held_out_ahead(json.load(sys.stdin)), sys.stdout)
    return 0


def held_out_ahead(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many documents and bytes of a folder or file would be held out, and which.

    request: source (see `DataSettings`), within_s, and most_texts, after which the look ends

    `form` is that of the rows, see `RowForm`; `is_whole` says whether all of it was read, and
    `why_not` why nothing can be; `code` and `hint` are that error's, where the work ends with it.
    """
    looking = _Looking(time.monotonic() + float(request["within_s"]), request.get("most_texts"))
    settings = DataSettings.parse(request["source"])
    with Extractor() as extractor:
        reading = SourceReader(SkipCounts(), extractor, SAMPLE_BYTES)
        texts = without_secrets(looking.texts(reading.texts(settings)), Counter())
        try:
            sample = read_first(texts, SAMPLE_BYTES, settings.holdout)
            split = split_of(sample, settings.holdout)
            for placed in (*sample, *texts):
                split.takes(placed)
        except JupiterError as error:
            is_sure = SkipReason.UNREADABLE not in reading.skips.counts  # others may read it
            error_fields = {"code": error.code, "hint": error.hint} if is_sure else {}
            return {"why_not": error.message, **error_fields}
    return {
        "form": str(reading.form),
        "documents": len(split.held_out),
        "bytes": split.held_out_bytes,
        "clusters": len(split.held_out_clusters),
        "names": sorted(split.held_out_clusters)[:MOST_NAMES],
        "read": looking.read,
        "is_whole": looking.is_whole,
    }


class _Looking:
    """Counts what was read, and ends in time."""

    def __init__(self, until_s: float, most_texts: int | None = None) -> None:
        self.read = 0
        self.is_whole = False
        self._until_s = until_s
        self._most = most_texts

    def texts(self, found: Iterable[PlacedText]) -> Iterator[PlacedText]:
        for placed in found:
            self.read += 1
            yield placed
            if self.read == self._most or time.monotonic() > self._until_s:
                return
        self.is_whole = True


if __name__ == "__main__":
    sys.exit(main())
