"""Comparison words: how a newcomer and a leader come by the same four, and nobody else can.

Owns the exchange and the newcomer's side of it. Doesn't know clocks, where random bytes or the list
of words come from, or how messages travel; who waits at a leader is in `pending_joins`.

The exchange, commit before reveal:

    newcomer                               leader
    1. draws a nonce, sends its hash  ->
                                      <-   2. draws a nonce, sends it
    3. sends its own nonce            ->   4. checks it against the hash
    both: four words, from a hash over the cluster, both nodes' ids and both nonces

The ids are hashes of the keys that the connection has verified, so with somebody in between the two
sides hash different ids. To make their words agree all the same it would have to choose a nonce for
each side before it knows that side's: one chance in 2^44 at each attempt, and attempts are counted.
Therefore a nonce that was shown is used with one nonce of the leader's, and never again.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from blake3 import blake3

from jupiterd.errors import UsageError
from jupiterd.ids import ClusterId, NodeId, short

NONCE_BYTES = 32
COMMITMENT_BYTES = 32
WORDS = 4
LISTED_WORDS = 2048
COMMAND = "jupiterctl node approve"

STICK_S = 5.0
"""Who else says that it leads isn't asked while a leader has answered so lately."""

MAX_EXCHANGES = 4

STALE_S = 240.0
"""After so long without an answer the newcomer begins anew: the leader is about to forget it."""

_LABEL = b"jupiter approval 1"
_WORD_BITS = 11
_DIGEST_BITS = 64

Numbers = tuple[int, ...]
"""The words as places in the list."""


@dataclass(frozen=True)
class ApprovalQuestion:
    """What a newcomer sends: its commitment each time, and its nonce once."""

    commitment: bytes
    nonce: bytes = b""


@dataclass(frozen=True)
class ApprovalAnswer:
    """What the leader says to it; without a nonce the newcomer isn't on its list."""

    nonce: bytes = b""
    is_revealed: bool = False
    reason: str = ""


@dataclass
class _Exchange:
    leader: NodeId
    cluster: ClusterId
    nonce: bytes
    answered_at: float
    leader_nonce: bytes = b""
    has_shown: bool = False
    is_revealed: bool = False


class Application:
    """A newcomer's exchanges: with one leader, and with another where that one is gone."""

    def __init__(self, own: NodeId) -> None:
        self._own = own
        self._exchanges: dict[NodeId, _Exchange] = {}

    @property
    def numbers(self) -> Numbers:
        """The words to compare; none before the leader has them too."""
        done = [exchange for exchange in self._exchanges.values() if exchange.is_revealed]
        latest = max(done, key=lambda exchange: exchange.answered_at, default=None)
        if latest is None:
            return ()
        nonces = latest.nonce, latest.leader_nonce
        return compare(latest.cluster, self._own, latest.leader, *nonces)

    def is_with(self, node: NodeId) -> bool:
        """Say whether `node` has answered as a leader does."""
        return node in self._exchanges and bool(self._exchanges[node].leader_nonce)

    def question(
        self, now: float, leader: NodeId, cluster: ClusterId, fresh_nonce: bytes
    ) -> ApprovalQuestion | None:
        """Return what to ask a node; None where another leader has answered just now."""
        if self._another_answers(now, leader):
            return None
        known = self._exchanges.get(leader)
        if known is None or known.cluster != cluster or now - known.answered_at > STALE_S:
            known = self._begin(now, leader, cluster, fresh_nonce)
        commitment = commit(self._own, known.nonce)
        if not known.leader_nonce or known.has_shown:
            return ApprovalQuestion(commitment)
        known.has_shown = True
        return ApprovalQuestion(commitment, known.nonce)

    def take(self, now: float, leader: NodeId, answer: ApprovalAnswer) -> bool:
        """Take in a leader's answer; say whether to go on at once, by showing the nonce."""
        known = self._exchanges.get(leader)
        if known is None:
            return False
        known.answered_at = now
        if not known.leader_nonce and len(answer.nonce) == NONCE_BYTES:
            known.leader_nonce = answer.nonce
            return True
        if not answer.nonce or answer.nonce != known.leader_nonce:
            self.drop(leader)  # it doesn't know us any more: with other nonces, from the start
            return False
        known.is_revealed = known.is_revealed or answer.is_revealed
        known.has_shown = known.is_revealed  # where ours was lost on its way it is sent again
        return not known.is_revealed

    def drop(self, leader: NodeId) -> None:
        """Forget the exchange with a node that doesn't lead any more, or that has let us in."""
        self._exchanges.pop(leader, None)

    def _another_answers(self, now: float, leader: NodeId) -> bool:
        return any(
            exchange.leader_nonce and now - exchange.answered_at < STICK_S
            for node, exchange in self._exchanges.items()
            if node != leader
        )

    def _begin(
        self, now: float, leader: NodeId, cluster: ClusterId, fresh_nonce: bytes
    ) -> _Exchange:
        self._exchanges[leader] = _Exchange(leader, cluster, fresh_nonce, now)
        if len(self._exchanges) > MAX_EXCHANGES:
            others = [node for node in self._exchanges if node != leader]
            self.drop(min(others, key=lambda node: self._exchanges[node].answered_at))
        return self._exchanges[leader]


def commit(newcomer: NodeId, nonce: bytes) -> bytes:
    """Return what binds a newcomer to its nonce without showing it."""
    return blake3(_LABEL + b" commitment\n" + newcomer.encode() + b"\n" + nonce).digest()


def is_committed(commitment: bytes, newcomer: NodeId, nonce: bytes) -> bool:
    """Say whether this is the nonce that a newcomer is bound to."""
    return len(nonce) == NONCE_BYTES and hmac.compare_digest(commitment, commit(newcomer, nonce))


def compare(
    cluster: ClusterId, newcomer: NodeId, leader: NodeId, nonce: bytes, leader_nonce: bytes
) -> Numbers:
    """Return the words that both sides show."""
    message = b"\n".join((_LABEL, cluster.encode(), newcomer.encode(), leader.encode()))
    digest = blake3(message + b"\n" + nonce + leader_nonce).digest(_DIGEST_BITS // 8)
    bits = int.from_bytes(digest)
    places = (_DIGEST_BITS - _WORD_BITS * (word + 1) for word in range(WORDS))
    return tuple((bits >> place) % LISTED_WORDS for place in places)


def spell(numbers: Numbers, words: Sequence[str]) -> str:
    """Return the words as people read them."""
    return " ".join(words[number] for number in numbers)


def read_words(text: str, words: Sequence[str]) -> Numbers:
    """Read words that somebody has typed; raises UsageError where they can't be any."""
    typed = text.lower().replace(",", " ").replace("-", " ").split()
    unknown = [word for word in typed if word not in words]
    if unknown or len(typed) != WORDS:
        wrong = f"{unknown[0]} isn't one of the words" if unknown else f"there are {WORDS} words"
        raise UsageError(wrong, 'copy them from the new machine: --words "one two three four"')
    return tuple(words.index(word) for word in typed)


def approve_command(name: str, node: NodeId) -> str:
    """Return what to type to let a node in; a name that a shell could misread isn't in it.

    name: empty where others are called so, too.
    """
    is_harmless = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name) is not None
    return f"{COMMAND} {name if is_harmless else short(node)}"
