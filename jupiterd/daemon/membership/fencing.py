"""Which leader and which gang this node obeys, across restarts.

Owns what is on disk of it. Doesn't know what is ordered, or the rule (`cluster.fencing`).
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
    """The highest (term, attempt) this node has obeyed, and whose; on disk before it is obeyed."""

    def __init__(
        self,
        file: LedgerFile,
        on_outranked: Callable[[NodeId, int], None] = lambda _leader, _term: None,
    ) -> None:
        """`on_outranked`: told of a leader of too low a term, and of the least that is obeyed."""
        self._file = file
        self._on_outranked = on_outranked
        self._highest = Obeyed.parse(file.get("obeyed") or "")
        self._saving = asyncio.Lock()

    async def check(self, leader: NodeId, term: int, attempt: int) -> None:
        """Obey, or refuse an order of a leader or a gang that is over; attempt 0 is of no gang.

        Raises:
            RefusedError: a higher term or attempt, or another leader in this term, has been obeyed.
        """
        async with self._saving:
            least_term = self._highest.least_term(leader)
            if term < least_term:
                self._on_outranked(leader, least_term)
            wanted = self._highest.after(leader, term, attempt)
            if wanted != self._highest:
                await asyncio.to_thread(self._file.set, "obeyed", str(wanted))
                self._highest = wanted
