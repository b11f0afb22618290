"""Join tokens: a secret that a cluster and a newcomer share, and how each proves it to the other.

Owns the text of a token, the proofs, and which tokens still count. Doesn't know clocks beyond
`TokenTimer`, or how a secret is drawn.

Neither side shows the secret. Each hashes it together with both nodes' ids, which are the hashes of
the keys that the connection has verified; so whoever stands between two nodes can't pass a proof
on, and a newcomer joins only a cluster that knows the secret too.
"""

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from blake3 import blake3

from jupiterd.cluster.facts.facts import NodeAdmitted, TokenIssued
from jupiterd.errors import UsageError
from jupiterd.ids import ClusterId, NodeId

PREFIX = "jupiter-"
ID_BYTES = 8
SECRET_BYTES = 16
LIFETIME_S = 24 * 3600.0

_CLUSTER_BYTES = 16
_CHECK_BYTES = 4


class Side(StrEnum):
    """Who proves."""

    NEWCOMER = "newcomer"
    MEMBER = "member"


@dataclass(frozen=True)
class Token:
    """What somebody carries from a member to a new machine."""

    cluster: ClusterId
    id: str
    """16 hex digits; names the token in the ledger."""
    secret: str
    """32 hex digits."""

    def __str__(self) -> str:
        body = bytes.fromhex(self.cluster + self.id + self.secret)
        text = base64.b32encode(body + _check(body)).decode().rstrip("=")
        return PREFIX + text.lower()


def parse_token(text: str) -> Token:
    """Read a token; raises UsageError where it isn't one, or was mistyped."""
    body = _decoded(text.strip().lower())
    if len(body) != _CLUSTER_BYTES + ID_BYTES + SECRET_BYTES + _CHECK_BYTES:
        raise _mistyped()
    body, check = body[:-_CHECK_BYTES], body[-_CHECK_BYTES:]
    if check != _check(body):
        raise _mistyped()
    cluster, rest = body[:_CLUSTER_BYTES], body[_CLUSTER_BYTES:]
    return Token(ClusterId(cluster.hex()), rest[:ID_BYTES].hex(), rest[ID_BYTES:].hex())


def prove(secret: str, side: Side, cluster: ClusterId, newcomer: NodeId, member: NodeId) -> bytes:
    """Return what shows that one side knows the secret, to the other side alone; 32 bytes."""
    key = blake3(bytes.fromhex(secret)).digest()
    message = f"{side}\n{cluster}\n{newcomer}\n{member}"
    return blake3(message.encode(), key=key).digest()


def is_proved(expected: bytes, given: bytes) -> bool:
    """Compare two proofs without telling by the time how far they agree."""
    return hmac.compare_digest(expected, given)


def still_count(
    issued: Mapping[str, TokenIssued], withdrawn: Iterable[str], admissions: Iterable[NodeAdmitted]
) -> dict[str, TokenIssued]:
    """Return the tokens that may let somebody in: not withdrawn, and not used up."""
    gone = set(withdrawn)
    used = [fact.token for fact in admissions]
    return {
        token: fact
        for token, fact in issued.items()
        if token not in gone and (fact.uses == 0 or used.count(token) < fact.uses)
    }


class TokenTimer:
    """When the tokens in force are too old, by the clock of one leader; a new one counts anew."""

    def __init__(self) -> None:
        self._seen_at: dict[str, float] = {}

    def expired(self, now: float, tokens: Iterable[str]) -> list[str]:
        """Return the tokens that this leader has seen in force for a day."""
        current = list(tokens)
        self._seen_at = {token: self._seen_at.get(token, now) for token in current}
        return [token for token in current if now - self._seen_at[token] >= LIFETIME_S]

    def left_s(self, now: float, token: str) -> float:
        """Return how long a token in force still counts, in seconds."""
        return max(0.0, LIFETIME_S - (now - self._seen_at.get(token, now)))


def _decoded(text: str) -> bytes:
    if not text.startswith(PREFIX):
        raise _mistyped()
    coded = text.removeprefix(PREFIX).upper()
    try:
        return base64.b32decode(coded + "=" * (-len(coded) % 8))
    except ValueError as error:  # not base32, or not even ASCII
        raise _mistyped() from error


def _check(body: bytes) -> bytes:
    return blake3(body).digest(_CHECK_BYTES)


def _mistyped() -> UsageError:
    return UsageError(
        "that isn't a join token, or a character of it is wrong",
        "jupiterctl cluster token, on any member, makes one; copy all of it",
    )
