"""Which leader and which gang this node obeys, across restarts.

Owns what is on disk of it. Doesn't know what is ordered, or the rule (`cluster.obedience`).
"""

import asyncio

from jupiterd.cluster.obedience import Obeyed
from jupiterd.store.ledger_file import LedgerFile


class Obedience:
    """The highest (term, epoch) this node has obeyed; on disk before it is obeyed."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file
        self._highest = Obeyed.parse(file.get("obeyed") or "")
        self._saving = asyncio.Lock()

    async def check(self, term: int, epoch: int) -> None:
        """Obey, or refuse an order of a leader or a gang that is over; epoch 0 is of no gang.

        Raises:
            RefusedError: a higher term or epoch has been obeyed before.
        """
        async with self._saving:
            wanted = self._highest.after(term, epoch)
            if wanted > self._highest:
                await asyncio.to_thread(self._file.set, "obeyed", str(wanted))
                self._highest = wanted
