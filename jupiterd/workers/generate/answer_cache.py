"""Answers that this machine has had before, so that work that was killed costs nothing again.

Owns a SQLite file of bounded size in the node's scratch folder, which every worker of the node
shares. Doesn't know prompts or models: an answer is found by a hash of all that decides it.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, cast

import msgpack
from blake3 import blake3

from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.workers.generate.engine import Request, Sampling

MAX_BYTES: Final = 256 << 20
"""Of answers; the oldest go."""

FILE: Final = "answers.db"
_BUSY_S: Final = 60.0

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    answer BLOB NOT NULL
);
"""

# Half of what is allowed stays, so that it isn't done for each answer.
_DROP: Final = """
DELETE FROM answers WHERE number <= (
    SELECT number FROM (
        SELECT number, sum(length(answer)) OVER (ORDER BY number DESC) AS behind FROM answers
    ) WHERE behind > :kept ORDER BY number DESC LIMIT 1
)
"""


def key_of(request: Request, model: str, sampling: Sampling) -> bytes:
    """Return a hash of all that decides an answer: prompt, model, how tokens are drawn, seed."""
    drawn = sampling.max_tokens, sampling.temperature, sampling.top_p
    prompt = request.prompt
    said = (model, prompt.message, prompt.opening, prompt.goes_on, request.seed, drawn)
    packed = cast("bytes", msgpack.packb(said))
    return blake3(packed).digest(16)


class AnswerCache:
    """The answers of one node; a context manager, and for one thread."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        """Open the file, or make it; the oldest answers go where it has grown too large."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._max_bytes = max_bytes
        try:
            self._database = _opened(folder / FILE)
        except sqlite3.DatabaseError:  # damaged: what it held costs another writing, and no more
            for path in folder.glob(f"{FILE}*"):
                path.unlink()
            self._database = _opened(folder / FILE)
        self._trim()

    def get(self, key: bytes) -> WrittenAnswer | None:
        """Return an answer that was had before, or None."""
        row = self._database.execute("SELECT answer FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        text, tokens, is_whole, is_opened = cast("list[Any]", msgpack.unpackb(row[0]))
        return WrittenAnswer(str(text), int(tokens), bool(is_whole), bool(is_opened))

    def put(self, key: bytes, written: WrittenAnswer) -> None:
        """Keep an answer; where one is kept already, that stays. It is only a help."""
        said = written.text, written.tokens, written.is_whole, written.is_opened
        row = key, cast("bytes", msgpack.packb(said))
        with suppress(sqlite3.Error):  # such as a full disk
            self._database.execute("INSERT OR IGNORE INTO answers (key, answer) VALUES (?, ?)", row)

    def _trim(self) -> None:
        held = self._database.execute("SELECT coalesce(sum(length(answer)), 0) FROM answers")
        if held.fetchone()[0] > self._max_bytes:
            self._database.execute(_DROP, {"kept": self._max_bytes // 2})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    # A crash of the machine may lose the newest answers, never the file.
    database.execute("PRAGMA synchronous = NORMAL")
    database.executescript(_SCHEMA)
    return database
