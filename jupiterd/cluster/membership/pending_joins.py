"""Who waits at a leader to be let in, and how many may.

Owns the leader's side of the exchange of `approval`, the list and its bounds. Doesn't know clocks,
random bytes, or who is a member. The list lies in memory alone: a new leader begins with none, and
whoever waits does the exchange again with it.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from jupiterd.cluster.membership.approval import (
    LISTED_WORDS,
    WORDS,
    ApprovalAnswer,
    ApprovalQuestion,
    Numbers,
    compare,
    is_committed,
)
from jupiterd.cluster.values.rate_limit import Rate, RateLimit
from jupiterd.errors import NotFoundError, RefusedError
from jupiterd.formats import printable
from jupiterd.ids import ClusterId, NodeId, short

MAX_WAITING = 8
MAX_OF_A_HOST = 2
"""Of those who wait: whoever has many keys doesn't take everybody's place."""
WAIT_S = 300.0
"""How long somebody stays on the list after its last sign."""
REVEAL_S = 10.0
"""How long it has for the exchange, or a few that never finish it would fill the list."""
MAX_TRIES = 3
PAUSE_S = 600.0
EACH_ADDRESS = Rate(per_s=1.0, burst=1.0)
ALL_ADDRESSES = Rate(per_s=10 / 60, burst=10.0)
MAX_REMEMBERED = 1024
MAX_NAME_BYTES = 64

PAUSED = "it failed too often; it may try again in ten minutes"
FULL = f"{MAX_WAITING} others wait already; it is tried again by itself"
CROWDED = f"{MAX_OF_A_HOST} others wait at its address already; it is tried again by itself"
TOO_OFTEN = "too many newcomers ask at once; it is tried again by itself"
MISMATCH = "what it showed isn't what it had committed to"


@dataclass(frozen=True)
class Applicant:
    """Who asks: its id is that of the connection's key, and the certificate holds that key."""

    node: NodeId
    name: str
    certificate_pem: bytes
    host: str
    """The address that it calls from."""


@dataclass(frozen=True)
class PendingJoin:
    """Somebody who waits, as every member shows it."""

    node: NodeId
    name: str
    numbers: Numbers
    """The words to compare."""


@dataclass
class _Entry:
    applicant: Applicant
    commitment: bytes
    nonce: bytes
    seen_at: float
    numbers: Numbers = ()

    def is_over(self, now: float) -> bool:
        return now - self.seen_at >= (WAIT_S if self.numbers else REVEAL_S)

    def answer(self) -> ApprovalAnswer:
        return ApprovalAnswer(self.nonce, bool(self.numbers))


class PendingJoins:
    """Those who wait at one leader."""

    def __init__(self, cluster: ClusterId, leader: NodeId, now: float) -> None:
        self._cluster = cluster
        self._leader = leader
        self._entries: dict[NodeId, _Entry] = {}
        self._tries: OrderedDict[NodeId, tuple[int, float]] = OrderedDict()
        self._rate = RateLimit[str](EACH_ADDRESS, ALL_ADDRESSES, now)

    def ask(
        self, now: float, applicant: Applicant, question: ApprovalQuestion, fresh_nonce: bytes
    ) -> ApprovalAnswer:
        """Answer one who asks to be let in; `fresh_nonce` is taken where an exchange begins."""
        self._forget(now)
        known = self._entries.get(applicant.node)
        if self._is_paused(applicant.node):
            return ApprovalAnswer(reason=PAUSED)
        if known is None or known.commitment != question.commitment:
            return self._begin(now, applicant, question, fresh_nonce)
        if question.nonce:
            return self._reveal(now, known, question.nonce)
        if known.numbers:
            known.seen_at = now
        return known.answer()

    def shown(self, now: float) -> list[PendingJoin]:
        """Return who waits with words to compare, in the order of their ids."""
        self._forget(now)
        return [
            PendingJoin(node, entry.applicant.name, entry.numbers)
            for node, entry in sorted(self._entries.items())
            if entry.numbers
        ]

    def check(self, now: float, node: NodeId, words: Numbers | None) -> Applicant:
        """Return who is to be let in, where these are its words; None compares none.

        Raises:
            NotFoundError: it doesn't wait any more.
            RefusedError: its words are others; that counts as a try.
        """
        self._forget(now)
        entry = self._entries.get(node)
        if entry is None or not entry.numbers:
            raise NotFoundError("that node doesn't wait any more", "jupiterctl node list")
        if words is not None and words != entry.numbers:
            self._count_try(now, node)
            raise RefusedError(
                f"those aren't the words of {entry.applicant.name}, so it isn't let in",
                "read them again from the new machine's screen: jupiterctl status; "
                "if they differ from those here, somebody stands between the two",
            )
        return entry.applicant

    def drop(self, node: NodeId) -> None:
        """Take a node off the list: it is a member now."""
        self._entries.pop(node, None)
        self._tries.pop(node, None)

    def _begin(
        self, now: float, applicant: Applicant, question: ApprovalQuestion, fresh_nonce: bytes
    ) -> ApprovalAnswer:
        node = applicant.node
        known = self._entries.get(node)
        if known is None and (question.nonce or len(self._entries) >= MAX_WAITING):
            # A nonce without an exchange is meant for one that is over.
            return ApprovalAnswer(reason="" if question.nonce else FULL)
        if known is None and self._of_host(applicant.host) >= MAX_OF_A_HOST:
            return ApprovalAnswer(reason=CROWDED)
        if not self._rate.allows(now, applicant.host):
            return ApprovalAnswer(reason=TOO_OFTEN)
        if known is not None:
            self._count_try(now, node)
            if self._is_paused(node):
                return ApprovalAnswer(reason=PAUSED)
        entry = _Entry(applicant, question.commitment, fresh_nonce, now)
        self._entries[node] = entry
        return entry.answer()

    def _of_host(self, host: str) -> int:
        return sum(entry.applicant.host == host for entry in self._entries.values())

    def _reveal(self, now: float, entry: _Entry, nonce: bytes) -> ApprovalAnswer:
        node = entry.applicant.node
        if entry.numbers or not is_committed(entry.commitment, node, nonce):
            self._count_try(now, node)
            if not entry.numbers:
                self._entries.pop(node, None)
            return ApprovalAnswer(reason=MISMATCH)
        entry.numbers = compare(self._cluster, node, self._leader, nonce, entry.nonce)
        entry.seen_at = now
        return entry.answer()

    def _count_try(self, now: float, node: NodeId) -> None:
        self._tries[node] = self._tries.pop(node, (0, now))[0] + 1, now
        while len(self._tries) > MAX_REMEMBERED:
            self._tries.popitem(last=False)
        if self._is_paused(node):
            self._entries.pop(node, None)

    def _is_paused(self, node: NodeId) -> bool:
        return self._tries.get(node, (0, 0.0))[0] >= MAX_TRIES

    def _forget(self, now: float) -> None:
        """Let go of who gave no sign for long; an exchange that was left open is a try."""
        for node, entry in tuple(self._entries.items()):
            if entry.is_over(now):
                del self._entries[node]
                if not entry.numbers:
                    self._count_try(now, node)
        for node, (_, at) in tuple(self._tries.items()):
            if now - at >= PAUSE_S:
                del self._tries[node]


def clean_name(name: str, node: NodeId) -> str:
    """Return a stranger's name for display, bounded and on one line."""
    cut = name.encode(errors="ignore")[:MAX_NAME_BYTES].decode(errors="ignore")
    return printable(cut.strip()) or short(node)


def to_plain(waiting: Sequence[PendingJoin]) -> list[list[Any]]:
    """Return who waits as a leader's telemetry carries it."""
    return [[seen.node, seen.name, list(seen.numbers)] for seen in waiting]


def from_telemetry(telemetry: Mapping[str, Any]) -> list[PendingJoin]:
    """Read who waits from a leader's telemetry; what can't be meant so is left out."""
    document: object = telemetry.get("waiting", [])
    rows = cast("list[object]", document)[:MAX_WAITING] if isinstance(document, list) else []
    return [waiting for row in rows if (waiting := _read(row)) is not None]


def _read(row: object) -> PendingJoin | None:
    match row:
        case [str(node), str(name), [*numbers]] if len(numbers) == WORDS:
            found = tuple(number for number in numbers if _is_place(number))
            if len(found) != WORDS or not re.fullmatch("[0-9a-f]{32}", node):
                return None
            return PendingJoin(NodeId(node), clean_name(name, NodeId(node)), cast("Numbers", found))
        case _:
            return None


def _is_place(number: object) -> bool:
    return isinstance(number, int) and 0 <= number < LISTED_WORDS
