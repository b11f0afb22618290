"""The store of a gang whose ranks no daemon has started, and how they ask it.

Owns a thread that answers, on a socket of this machine's files. Doesn't know what ranks keep there.
"""

import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from jupiterd.cluster.training.gang_store import GangStore, StoreQuestion
from jupiterd.errors import TimedOutError
from jupiterd.protocol.frames import StoreAnswered, StoreAsked

WAIT_S = 60.0


class OpenStore:
    """One gang's."""

    def __init__(self) -> None:
        self._store = GangStore()
        self._changed = threading.Condition()

    def answer(self, verb: str, keys: Sequence[str], values: Sequence[bytes]) -> bytes:
        """Answer once what is asked for is there."""
        question = StoreQuestion.of(verb, keys, values)
        with self._changed:
            while (value := self._store.answer(question)) is None:
                if not self._changed.wait(WAIT_S):
                    raise TimedOutError(f"{keys} isn't there")
            self._changed.notify_all()
        return value

    def answer_later(self, asked: StoreAsked, tell: Callable[[StoreAnswered], None]) -> None:
        """Answer a frame, in a thread of its own."""

        def answer() -> None:
            tell(StoreAnswered(asked.number, self.answer(asked.verb, asked.keys, asked.values)))

        threading.Thread(target=answer, daemon=True).start()

    def serve(self) -> str:
        """Answer other processes from now on; return where."""
        address = str(Path(tempfile.mkdtemp()) / "store")
        listener = Listener(address, "AF_UNIX")

        def accept() -> None:
            while True:
                ours = listener.accept()
                threading.Thread(target=self._talk, args=(ours,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return address

    def _talk(self, other: "Connection[bytes, tuple[str, list[str], list[bytes]]]") -> None:
        while True:
            try:
                asked = other.recv()
            except EOFError:
                return
            other.send(self.answer(*asked))


_talks = threading.local()


def ask(address: str, verb: str, keys: Sequence[str], values: Sequence[bytes]) -> bytes:
    """Ask a store that serves there."""
    talks: dict[str, Connection[tuple[str, list[str], list[bytes]], bytes]] = vars(_talks)
    if address not in talks:
        talks[address] = Client(address, "AF_UNIX")
    talks[address].send((str(verb), list(keys), list(values)))
    return talks[address].recv()
