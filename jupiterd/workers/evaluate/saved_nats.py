"""Scores that this machine has computed before: a model that was brought is scored in every round.

Owns a SQLite file in the node's scratch folder, which every worker of the node shares. Doesn't know
documents or roles: nats are found by a hash of the model's artifact id, the engine and the text.
It is only a help: what can't be read or written is computed.
"""

import math
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from blake3 import blake3

from jupiterd.workers.evaluate.text_scorer import MAX_CONTEXT

FOLDER: Final = "scores"
"""Beside the node's scratch folders."""
FILE: Final = "nats.db"
MAX_ROWS: Final = 500_000
"""Some 30 MB; with more it begins anew."""
ID_DIGITS: Final = 64
"""Of an artifact's id."""

_BUSY_S: Final = 60.0
_SCHEMA: Final = "CREATE TABLE IF NOT EXISTS nats (key BLOB PRIMARY KEY, nats REAL) WITHOUT ROWID"


def computed_on(engine: str, device: str) -> str:
    """Return what scores are kept under: those of a GPU differ in their last digits."""
    kind = device.partition(":")[0]
    return f"{engine} {kind}" if kind == "cuda" else engine


class SavedNats:
    """The scores that one node keeps."""

    def __init__(self, folder: Path | None, engine: str) -> None:
        """Say where they lie; None: nothing is kept."""
        self._folder, self._engine = folder, engine

    def known(self, model: Path, texts: Sequence[str]) -> dict[int, float]:
        """Return place of a text -> its nats, of those that were scored before."""
        keys = self._keys(model, texts)
        with suppress(sqlite3.Error, OSError), self._opened() as database:
            rows = ((place, database.execute(_ASK, (key,)).fetchone()) for place, key in keys)
            return {place: float(row[0]) for place, row in rows if row is not None}
        return {}

    def keep(self, model: Path, texts: Sequence[str], nats: Mapping[int, float]) -> None:
        """Keep what the texts at these places were given; what isn't finite may be so by chance."""
        rows = [
            (key, nats[place])
            for place, key in self._keys(model, texts)
            if math.isfinite(nats.get(place, math.inf))
        ]
        with suppress(sqlite3.Error, OSError), self._opened() as database:
            if database.execute("SELECT count(*) FROM nats").fetchone()[0] > MAX_ROWS:
                database.execute("DELETE FROM nats")
            database.executemany("INSERT OR REPLACE INTO nats VALUES (?, ?)", rows)

    def _keys(self, model: Path, texts: Sequence[str]) -> list[tuple[int, bytes]]:
        """Return the key of each text; none where nothing says which model it is."""
        artifact = model.parent.name  # a store has an artifact's files in ID/files
        if self._folder is None or len(artifact) != ID_DIGITS:
            return []
        begins = f"{artifact}\0{self._engine}\0{MAX_CONTEXT}\0".encode()
        return [(n, blake3(begins + text.encode()).digest(16)) for n, text in enumerate(texts)]

    @contextmanager
    def _opened(self) -> Generator[sqlite3.Connection]:
        if self._folder is None:
            raise FileNotFoundError
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = sqlite3.connect(self._folder / FILE, timeout=_BUSY_S)
        try:
            database.execute(_SCHEMA)
            with database:
                yield database
        finally:
            database.close()


_ASK: Final = "SELECT nats FROM nats WHERE key = ?"

NOTHING_SAVED: Final = SavedNats(None, "")
