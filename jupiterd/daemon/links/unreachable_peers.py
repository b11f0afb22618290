"""Where somebody is heard by multicast, or named, and can't be reached.

Owns putting these facts together, and saying so once in the log. Doesn't know what is made of it
(`cluster.links.unreached`).
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final

from jupiterd.cluster.links.unreached import Reached, Unreached
from jupiterd.daemon.links.dial_schedule import Attempt, DialSchedule
from jupiterd.daemon.links.peers import Peers
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId
from jupiterd.net.announcement_times import AnnouncementTimes
from jupiterd.net.scopes import without_scope_in
from jupiterd.ports import Address

log = logging.getLogger(__name__)

FAILING_S: Final = 8.0
"""A machine that starts, or sleeps for a moment, isn't reported."""
FAILURES: Final = 2

HEARD_S: Final = 60.0
"""Who doesn't answer is asked every ten seconds whether it is there: one that was switched off, or
has left, announces itself no more."""


class UnreachablePeers:
    """What was found at the last look."""

    def __init__(
        self, addresses: DialSchedule, peers: Peers, works: Callable[[NodeId], bool]
    ) -> None:
        """Take what is tried.

        Args:
            addresses: where somebody may answer.
            peers: the links there are, or were.
            works: whether a node is reached, wherever it is.
        """
        self._addresses, self._peers, self._works = addresses, peers, works
        self.announced = AnnouncementTimes(now_s)
        self.named: Callable[[], frozenset[Address]] = frozenset
        """Returns the addresses that people named."""
        self.found: tuple[Unreached, ...] = ()

    def look(self) -> None:
        """Look once; what is new, and what is over, is logged."""
        failing = [
            (address, attempt)
            for address, attempt in self._addresses.items()
            if _fails(attempt) and not self._is_reached_elsewhere(address)
        ]
        self.announced.doubted = frozenset(address for address, _ in failing)
        before, self.found = self.found, tuple(self._unreached(failing))
        reported_before = {each.address for each in before}
        for each in self.found:
            if each.address not in reported_before:
                fields = {"address": each.address, "reached": each.reached.name.lower()}
                log.warning("unreached", extra=fields | {"heard": each.is_heard})
        for address in reported_before - {each.address for each in self.found}:
            log.info("unreached_over", extra={"address": address})

    def _unreached(self, failing: list[tuple[Address, Attempt]]) -> Iterator[Unreached]:
        named = self.named()
        for address, attempt in sorted(failing, key=lambda item: ":" in item[0].host):
            heard_s = self.announced.heard_s(address)
            is_heard = heard_s > (attempt.failing_since_s or 0.0) and now_s() - heard_s < HEARD_S
            name = self._name_at(address)
            failed_at = attempt.failed_at
            # A member at whose address nobody answers is reported as gone.
            is_wanted = failed_at >= Reached.CONNECTED if name else address in named
            if (is_heard and failed_at is not Reached.REFUSED) or is_wanted:
                yield Unreached(str(address), failed_at, is_heard, name)

    def _is_reached_elsewhere(self, address: Address) -> bool:
        text = without_scope_in(str(address))
        linked = (peer for peer in self._peers if self._works(peer.node))
        return any(text in peer.addresses or address in peer.paths() for peer in linked)

    def _name_at(self, address: Address) -> str:
        text = without_scope_in(str(address))
        return next((peer.name for peer in self._peers if text in peer.addresses), "")


def _fails(attempt: Attempt) -> bool:
    since_s = attempt.failing_since_s
    return (
        since_s is not None
        and attempt.failures >= FAILURES
        and now_s() - since_s >= FAILING_S
        and not attempt.is_ours
    )
