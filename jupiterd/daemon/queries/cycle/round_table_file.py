"""Keeping cycles.tsv in the state folder up to date with the ledger.

Owns when it is written, and that it is there whole. Doesn't know the columns
(`cycle.rounds.round_table`).
"""

import asyncio
import logging
import os
from pathlib import Path

from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.rounds.round_table import table_text
from jupiterd.daemon.catalog.round_rows import round_rows
from jupiterd.daemon.ledger.replica import Replica

log = logging.getLogger(__name__)

RETRY_S = 60.0


class RoundTableFile:
    """Rewrites the file when one more round is over, or another branch counts."""

    def __init__(self, replica: Replica, path: Path) -> None:
        self._replica = replica
        self._path = path
        self._seen: object = None

    async def run(self) -> None:
        """Look at every entry that comes in."""
        version = -1
        while True:
            version = await self._replica.changed_since(version)
            if not await self.look():
                await asyncio.sleep(RETRY_S)
                version = -1

    async def look(self) -> bool:
        """Write the file where it isn't as it should be; return whether it is now."""
        over = _rounds_over(self._replica.state)
        if over == self._seen or not (over or self._path.exists()):
            return True
        text = table_text(round_rows(self._replica.state))
        try:
            await asyncio.to_thread(_write, self._path, text)
        except OSError as error:
            log.warning("round_table_not_written", extra={"reason": str(error)})
            return False
        self._seen = over
        return True


def _rounds_over(state: State) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return a key that differs between two tables, without making them.

    That is each cycle's rounds, and how much work of them is known: it may come later.
    """
    found: list[tuple[str, int, tuple[str, ...]]] = []
    for name, cycle in state.cycles.items():
        rounds = cycle.rounds if cycle.started is not None else ()
        if rounds:
            known = sum(number <= len(rounds) for number, _ in cycle.completed)
            found.append((name, known, tuple(done.final_checkpoint for done in rounds)))
    return found


def _write(path: Path, text: str) -> None:
    """Put the text in place all at once."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", errors="replace")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
