"""The stores where gangs meet that this node holds: those of the gangs whose rank 0 runs here.

Owns the stores, who may ask them, and waiting for what isn't there yet. Doesn't know what ranks
keep there, or how a question comes here (`store_calls`). No port is open for them.
"""

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from jupiterd.cluster.training.gang_store import GangStore, StoreQuestion
from jupiterd.cluster.training.store_place import StorePlace
from jupiterd.errors import (
    MalformedError,
    NotFoundError,
    RefusedError,
    TimedOutError,
    TooLargeError,
)
from jupiterd.ids import NodeId, short

PARAM: Final = "store"
"""What an order calls it where its gang meets."""

MAX_WITHIN_S: Final = 3600.0
MAX_WAITING: Final = 256
"""Questions that wait for what isn't in one store yet; and of one node, for stores to be opened."""

MAX_NAMES: Final = 64


@dataclass
class _Open:
    members: frozenset[NodeId]
    store: GangStore = field(default_factory=GangStore)


class GangStores:
    """Those of this node."""

    def __init__(self, own: NodeId) -> None:
        self._own = own
        self._open: dict[str, _Open] = {}
        self._closed: deque[str] = deque(maxlen=MAX_NAMES)
        self._news = asyncio.Event()
        self._waiting = Counter[str]()
        """How many wait: by store where it is open, and else by who asks."""

    @contextmanager
    def opened(self, params: Mapping[str, Any]) -> Generator[None]:
        """Hold the store of a gang whose rank 0 runs here in the meantime; of others nothing.

        Raises:
            MalformedError: the order doesn't say where its gang meets.
        """
        if PARAM not in params or params.get("rank") != 0:
            yield
            return
        place = StorePlace.from_plain(params[PARAM])
        if place.holder != self._own or place.name in self._open:
            raise MalformedError("a gang's store can't be opened here")
        self._open[place.name] = _Open(frozenset(place.members))
        with contextlib.suppress(ValueError):
            self._closed.remove(place.name)
        self._notify()
        try:
            yield
        finally:
            del self._open[place.name]
            self._closed.append(place.name)
            self._notify()

    async def answer(
        self, who: NodeId, name: str, question: StoreQuestion, within_s: float
    ) -> bytes:
        """Answer a member's question, once what it asks for is there.

        Raises:
            RefusedError: the caller has no rank in that attempt.
            NotFoundError: the attempt is over.
            TimedOutError: what it asks for hasn't come.
            TooLargeError: too many wait, or the store would hold too much.
        """
        try:
            async with asyncio.timeout(min(within_s, MAX_WITHIN_S)):
                return await self._answer(who, name, question)
        except TimeoutError as error:
            raise TimedOutError(_waited(name, question, within_s, name in self._open)) from error

    async def _answer(self, who: NodeId, name: str, question: StoreQuestion) -> bytes:
        while True:
            news = self._news
            if name in self._closed:
                raise NotFoundError(f"the store of {name} is closed: the attempt is over")
            if (opened := self._open.get(name)) is not None:
                if who not in opened.members:
                    raise RefusedError(f"node {short(who)} has no rank in this attempt")
                if (value := opened.store.answer(question)) is not None:
                    if question.changes:
                        self._notify()
                    return value
            with self._queued(f"store {name}" if opened is not None else f"node {who}"):
                await news.wait()

    @contextmanager
    def _queued(self, line: str) -> Generator[None]:
        """Whoever has no rank takes no place from those who have."""
        if self._waiting[line] >= MAX_WAITING:
            raise TooLargeError("too many wait for a gang's store")
        self._waiting[line] += 1
        try:
            yield
        finally:
            self._waiting[line] -= 1
            if not self._waiting[line]:
                del self._waiting[line]

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _waited(name: str, question: StoreQuestion, within_s: float, is_open: bool) -> str:  # noqa: FBT001
    what = f"{', '.join(question.keys)[:200]} isn't in the store of {name}"
    return f"{what if is_open else f'the store of {name} is not open'} after {within_s:g} s"
