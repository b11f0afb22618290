"""The addresses where somebody may answer, and when each is tried again.

Owns both, and their bound. Doesn't know what is said there (`handshake`), or how addresses are
found (`net`).
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from jupiterd.cluster.links.unreached import Reached
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId
from jupiterd.ports import Address

TICK_S = 0.1
"""Between two looks at what is due lies as much at least."""
SOON_S = 0.1
FIRST_RETRY_S = 0.5
LAST_RETRY_S = 30.0
LOOK_AGAIN_S = 300.0
"""A working link reports its peer, and `path_monitor` measures other paths to it; this is for
what neither notices."""

MAX_ADDRESSES = 256
NEVER_S = float("-inf")


@dataclass
class Attempt:
    """When an address is tried next."""

    due_s: float
    wait_s: float = FIRST_RETRY_S
    tried_s: float = NEVER_S
    announced_s: float = NEVER_S
    """When the address was last announced; NEVER_S for one saved by an earlier start."""
    is_ours: bool = False
    is_under_way: bool = False
    reached: Reached = Reached.NOTHING
    """How far the running attempt has come."""
    failed_at: Reached = Reached.NOTHING
    """How far the last one came that failed."""
    failing_since_s: float | None = None
    """When the first try began of those that failed in a row; None: the last one didn't."""
    failures: int = 0
    """How many did."""
    put_off_for: NodeId | None = None
    """Who answered there and is linked: as long as the link works, there is no hurry."""

    @property
    def is_fresh(self) -> bool:
        """Say whether it was announced since it was last tried."""
        return self.announced_s > self.tried_s

    @property
    def is_waiting(self) -> bool:
        """Say whether it is to be tried when it is due."""
        return not (self.is_ours or self.is_under_way)

    def begin(self) -> None:
        """Take note that the address is tried now, and let each wait be longer than the last."""
        self.is_under_way, self.put_off_for = True, None
        self.reached = Reached.NOTHING
        self.tried_s = now_s()
        self.due_s = now_s() + self.wait_s
        self.wait_s = min(self.wait_s * 2, LAST_RETRY_S)

    def reach(self, reached: Reached) -> None:
        """Take note of how far the try has come."""
        self.reached = reached

    def fail(self) -> None:
        """Take note that nobody was reached."""
        self.failures += 1
        self.failed_at = self.reached
        if self.failing_since_s is None:
            self.failing_since_s = self.tried_s

    def succeed(self) -> None:
        """Take note that somebody answered."""
        self.failures, self.failing_since_s = 0, None

    def end(self) -> None:
        """Take note that nobody waits for an answer any more."""
        self.is_under_way = False

    def again_in(self, wait_s: float) -> None:
        """Schedule it in `wait_s` seconds, and start its back-off again."""
        self.due_s, self.wait_s = now_s() + wait_s, FIRST_RETRY_S

    @property
    def is_seldom(self) -> bool:
        """Say whether it has been tried so often that the next try is half a minute away."""
        return self.wait_s >= LAST_RETRY_S

    def put_off(self, node: NodeId) -> None:
        """Postpone it by LOOK_AGAIN_S: there is a link to this node, at this address or another."""
        self.due_s, self.put_off_for = now_s() + LOOK_AGAIN_S, node


class DialSchedule:
    """Every address that was discovered, reported or saved, MAX_ADDRESSES at most."""

    def __init__(self, is_in_use: Callable[[Address], bool]) -> None:
        """`is_in_use` says whether a link uses an address; such a one isn't forgotten."""
        self._is_in_use = is_in_use
        self._attempts: dict[Address, Attempt] = {}
        self._news = asyncio.Event()

    def __iter__(self) -> Iterator[Address]:
        return iter(tuple(self._attempts))

    def __len__(self) -> int:
        return len(self._attempts)

    def items(self) -> list[tuple[Address, Attempt]]:
        """Return each address with its tries."""
        return [*self._attempts.items()]

    def __getitem__(self, address: Address) -> Attempt:
        return self._attempts[address]

    def note(self, address: Address) -> None:
        """Take up an address, or look at a known one again at once."""
        known = self._attempts.get(address)
        if known is None:
            self.note_new(address)
        elif not known.is_ours:
            known.announced_s = now_s()
            known.due_s = min(known.due_s, now_s() + SOON_S)
            known.wait_s = FIRST_RETRY_S
            self.reconsider()

    def note_new(self, address: Address) -> bool:
        """Take up an address unless it is known; say whether it is new."""
        if address in self._attempts:
            return False
        if len(self._attempts) >= MAX_ADDRESSES:
            self._forget_one()
        self._attempts[address] = Attempt(now_s(), announced_s=now_s())
        self.reconsider()
        return True

    def note_saved(self, addresses: Iterable[Address]) -> None:
        """Take up where others answered before this start, the most recent first."""
        for address in addresses:
            if self.note_new(address):
                self._attempts[address].announced_s = NEVER_S

    def hasten(self, address: Address, unless_tried_within_s: float = 0.0) -> None:
        """Have a known address tried at once."""
        known = self._attempts.get(address)
        if known is not None and now_s() - known.tried_s > unless_tried_within_s:
            known.due_s = now_s()
            self.reconsider()

    def look_again(self) -> None:
        """Schedule every address to be tried again soon."""
        self.reconsider()
        for attempt in self._attempts.values():
            attempt.again_in(0.0)

    def recall(self, works: Callable[[NodeId], bool]) -> None:
        """Try at once the addresses that were postponed for a link which no longer works."""
        for attempt in self._put_off():
            if attempt.put_off_for is not None and not works(attempt.put_off_for):
                attempt.put_off_for = None
                attempt.again_in(0.0)

    def ask_around(self) -> None:
        """Try postponed addresses again 30 s after their last attempt: they may know more members.

        A member reports where others answer; so a node is found that multicast doesn't reach.
        """
        for attempt in self._put_off():
            attempt.due_s = min(attempt.due_s, attempt.tried_s + LAST_RETRY_S)

    def _put_off(self) -> list[Attempt]:
        return [a for a in self._attempts.values() if a.put_off_for is not None]

    def due(self) -> list[tuple[Address, Attempt]]:
        """Return the addresses to be tried now: the fresh ones, then who has waited longest."""
        now = now_s()
        due = [
            (address, attempt)
            for address, attempt in self._attempts.items()
            if attempt.is_waiting and now >= attempt.due_s
        ]
        return sorted(due, key=lambda item: (not item[1].is_fresh, item[1].due_s))

    def reconsider(self) -> None:
        """Take note that an address may be due sooner than it was: a try of one has ended."""
        self._news.set()

    async def pause(self, until_s: float) -> None:
        """Wait until an address is due or `until_s` has come, or a change, but at least TICK_S."""
        began_s = now_s()
        self._news.clear()
        due_s = min((a.due_s for a in self._attempts.values() if a.is_waiting), default=until_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(TICK_S, min(due_s, until_s) - began_s)):
                await self._news.wait()
        await asyncio.sleep(max(0.0, began_s + TICK_S - now_s()))

    def _forget_one(self) -> None:
        """Make room: the address that nobody uses and that was tried longest ago goes."""
        idle = [
            (attempt.tried_s, str(address), address)
            for address, attempt in self._attempts.items()
            if not (self._is_in_use(address) or attempt.is_ours)
        ]
        if idle:
            del self._attempts[min(idle)[2]]
