"""Fencing: orders of an outranked leader or gang are refused, across restarts.

Owns the fencing token on disk. Doesn't know what is ordered, or the rule
(`cluster.membership.fencing`).
"""

import asyncio
from collections.abc import Callable

from jupiterd.cluster.membership.fencing import Obeyed
from jupiterd.cluster.values.bounds import is_count
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import NodeId
from jupiterd.store.ledger_file import LedgerFile

HOW_TO_HEAL = (
    "on every machine of the cluster: stop jupiterd, run: jupiterd heal, and start it again"
)
"""What mends a cluster whose term is out of bounds."""


def check_term(term: int) -> None:
    """Raise CorruptLedgerError where a term on disk is out of bounds."""
    if not is_count(term):
        message = f"the highest term on disk, {term}, is out of bounds"
        raise CorruptLedgerError(message, HOW_TO_HEAL)


class Fencing:
    """The highest (term, attempt) accepted, and whose; on disk before its order is carried out."""

    def __init__(
        self,
        file: LedgerFile,
        on_outranked: Callable[[NodeId, int], None] = lambda _leader, _term: None,
    ) -> None:
        """`on_outranked`: called with a leader of too low a term, and the least term accepted."""
        self._file = file
        self._on_outranked = on_outranked
        self._highest = Obeyed.parse(file.get("obeyed") or "")
        self._saving = asyncio.Lock()

    async def check(self, leader: NodeId, term: int, attempt: int) -> None:
        """Accept an order's (term, attempt), or refuse one that is outranked; attempt 0: no gang.

        Raises:
            RefusedError: a higher term or attempt, or another leader in this term, was accepted.
        """
        async with self._saving:
            least_term = self._highest.least_term(leader)
            if term < least_term:
                self._on_outranked(leader, least_term)
            wanted = self._highest.after(leader, term, attempt)
            if wanted != self._highest:
                await asyncio.to_thread(self._file.set, "obeyed", str(wanted))
                self._highest = wanted
