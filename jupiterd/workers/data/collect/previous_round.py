"""What the round before found of a source, looked up by where it came from.

Owns an index on disk of those samples, and of the lines that the collector left for itself, so that
their number is no trouble. Doesn't know what has changed since.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jupiterd.cycle.data.lineage import Sample
from jupiterd.workers.samples.sample_file import LineWriter, read_all, read_lines

STATE_FILE = "state.jsonl.zst"


class PreviousRound:
    """The samples and the state of the round before; empty in the first one."""

    def __init__(
        self,
        index: Path,
        samples: Sequence[Path] = (),
        state: Path | None = None,
        collector: str = "",
    ) -> None:
        """Make the index anew.

        Args:
            index: the file to make.
            samples: sample folders.
            state: the folder with the collector's own lines.
            collector: name@version of who asks; what another one found is left alone.
        """
        index.unlink(missing_ok=True)
        self._database = sqlite3.connect(index, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE samples (uri TEXT PRIMARY KEY, line TEXT NOT NULL)")
        self._database.execute("CREATE TABLE state (key TEXT PRIMARY KEY, line TEXT NOT NULL)")
        self._state = state
        self._fill(sample for sample in read_all(samples) if sample.collector == collector)
        self.count: int = self._database.execute("SELECT count(*) FROM samples").fetchone()[0]
        self._fill_state()

    def _fill(self, samples: Iterable[Sample]) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT OR IGNORE INTO samples VALUES (?, ?)",
            ((sample.source_uri, sample.to_json()) for sample in samples),
        )
        self._database.execute("COMMIT")

    def _fill_state(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT OR IGNORE INTO state VALUES (?, ?)",
            ((json.loads(line).get("key", ""), line) for line in self._state_lines()),
        )
        self._database.execute("COMMIT")

    def sample(self, uri: str) -> Sample | None:
        """Return the sample that came from there."""
        row = self._database.execute("SELECT line FROM samples WHERE uri = ?", (uri,)).fetchone()
        return None if row is None else Sample.from_json(row[0])

    def has(self, uri: str, source_hash: str, extractor: str) -> bool:
        """Say whether the same bytes came from there, and were read in the same way."""
        sample = self.sample(uri)
        return sample is not None and (sample.source_hash, sample.extractor) == (
            source_hash,
            extractor,
        )

    def uris(self) -> Iterator[str]:
        """Yield where each sample came from, in order."""
        for (uri,) in self._database.execute("SELECT uri FROM samples ORDER BY uri").fetchall():
            yield uri

    def state(self) -> Iterator[Mapping[str, Any]]:
        """Yield the lines that the collector left for itself; none where there are no samples."""
        yield from map(json.loads, self._state_lines())

    def state_of(self, key: str) -> Mapping[str, Any] | None:
        """Return the line of that key which the collector left, if there is one."""
        row = self._database.execute("SELECT line FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def _state_lines(self) -> Iterator[str]:
        if self._state is not None and self.count:
            yield from read_lines(self._state / STATE_FILE)

    def close(self) -> None:
        """Let go of the index."""
        self._database.close()


def write_state(folder: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write a collector's lines for the next round."""
    folder.mkdir(parents=True, exist_ok=True)
    with LineWriter(folder / STATE_FILE) as writer:
        for line in lines:
            writer.write(json.dumps(line, ensure_ascii=False, sort_keys=True))
