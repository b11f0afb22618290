"""What packets that are lost do to a unary call: two models of one pair's connection.

Owns when a request and its reply arrive, if ever. Doesn't know what they say.

`Datagrams`: a call that loses its request or its reply is lost, and the next one isn't held up.
`Stream`: what TCP and gRPC make of it. Nothing is lost, but whatever is sent waits for what was
sent before it in its direction, and a packet is sent again after 0.2, 0.4, 0.8, 1.6 and 3.2 s (one
probe and Linux's doubling time-out). Data that stays unconfirmed for 5 s ends the connection (the
keepalive time-out is the socket's user time-out as well); then gRPC dials again, TCP and TLS.
"""

from dataclasses import dataclass
from random import Random
from typing import Protocol

NEVER = float("inf")
SENT_AGAIN_S = (0.0, 0.2, 0.4, 0.8, 1.6, 3.2)
GIVEN_UP_S = 5.0
SYN_AGAIN_S = (0.0, 1.0)
HANDSHAKE_PACKETS = 6
"""After TCP's own two: the hello, two of the server's answer, two of ours, its settings."""
FIRST_DIAL_S, LAST_DIAL_S, DIAL_GROWTH = 0.2, 2.0, 1.6


@dataclass(frozen=True)
class Carried:
    """When the two messages of a call arrive; `NEVER` where one doesn't."""

    request_at: float
    reply_at: float
    over_at: float
    """When the caller may call again, if it doesn't give up before."""


class Link(Protocol):
    """A connection that one node calls another over."""

    def carry(self, now: float) -> Carried:
        """Begin a call."""
        ...


class Datagrams:
    """Each message is lost or isn't."""

    def __init__(self, rng: Random, loss: float) -> None:
        self._rng = rng
        self._loss = loss

    def carry(self, now: float) -> Carried:
        """Begin a call."""
        if self._rng.random() < self._loss:
            return Carried(NEVER, NEVER, now)
        return Carried(now, NEVER if self._rng.random() < self._loss else now, now)


class Stream:
    """One TCP connection with TLS, and the dialling that follows its end."""

    def __init__(self, rng: Random, loss: float) -> None:
        self._rng = rng
        self._loss = loss
        self._up_at = 0.0
        """From when on it is connected."""
        self._out_free_at = 0.0
        """When all that the caller has sent is confirmed."""
        self._back_free_at = 0.0
        self.ended = 0
        """How many connections were given up."""

    def carry(self, now: float) -> Carried:
        """Begin a call; one that finds no connection fails at once, as gRPC has it."""
        if now < self._up_at:
            return Carried(NEVER, NEVER, now)
        sent_at = max(now, self._out_free_at)
        request_at = sent_at + self._delay_s()
        if request_at == NEVER:
            return self._end(sent_at + GIVEN_UP_S, NEVER)
        reply_sent_at = max(request_at, self._back_free_at)
        reply_at = reply_sent_at + self._delay_s()
        confirmed_at = min(reply_at, self._confirmed_at(sent_at, request_at))
        if confirmed_at >= sent_at + GIVEN_UP_S:
            return self._end(sent_at + GIVEN_UP_S, request_at)
        if reply_at == NEVER:
            return self._end(reply_sent_at + GIVEN_UP_S, request_at)
        self._out_free_at, self._back_free_at = confirmed_at, reply_at
        return Carried(request_at, reply_at, reply_at)

    def _delay_s(self) -> float:
        """Return how long a packet is sent again before it arrives; `NEVER` where it never does."""
        if not self._loses():
            return 0.0
        return next((again_s for again_s in SENT_AGAIN_S[1:] if not self._loses()), NEVER)

    def _confirmed_at(self, sent_at: float, request_at: float) -> float:
        """Return when a request that has come and is sent again is confirmed, beside its reply."""
        again_at = (sent_at + again_s for again_s in SENT_AGAIN_S[1:])
        answers = (at for at in again_at if at > request_at and not self._loses())
        return next((at for at in answers if not self._loses()), NEVER)

    def _end(self, at: float, request_at: float) -> Carried:
        """The connection is given up; nobody calls before another one is there."""
        self.ended += 1
        self._up_at = self._out_free_at = self._back_free_at = at + self._dialling_s()
        return Carried(request_at, NEVER, at)

    def _dialling_s(self) -> float:
        """Return how long it takes until an attempt succeeds within its own time."""
        took_s, limit_s = 0.0, FIRST_DIAL_S
        while True:
            attempt_s = self._connecting_s()
            if attempt_s <= limit_s:
                return took_s + attempt_s
            took_s += limit_s
            limit_s = min(limit_s * DIAL_GROWTH, LAST_DIAL_S)

    def _connecting_s(self) -> float:
        for syn_s in SYN_AGAIN_S:
            if not self._loses() and not self._loses():
                return syn_s + sum(self._delay_s() for _ in range(HANDSHAKE_PACKETS))
        return NEVER

    def _loses(self) -> bool:
        return self._rng.random() < self._loss
