"""What is told of each request that was answered.

Owns the record, and handing it to whoever follows. Doesn't know who that is, nor any text: prompts
and answers are nobody's business.
"""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

MOST_UNREAD: Final = 1000
"""A follower that doesn't read misses what comes after so many."""


@dataclass(frozen=True)
class RequestRecord:
    """One request that is over."""

    model: str
    """Empty: nobody read which."""
    is_chat: bool | None
    """None: it was refused at the gate."""
    status: int
    """HTTP's; 499 where the client went away, and 502 within a stream that was cut."""
    ended_at_s: float
    """In s since 1970."""
    duration_s: float
    """From its arrival to the end."""
    first_s: float | None
    """From its arrival to the first bytes of the answer; None: there were none."""
    prompt_tokens: int | None
    """None: the engine doesn't tell."""
    completion_tokens: int | None
    reason: str = ""
    """Why it was refused, or broke off; empty where it wasn't."""
    left_out: str = ""
    """A field that the model has no place for, and that was left out: `tools`."""

    def to_plain(self) -> dict[str, Any]:
        """Return it for people and scripts."""
        return asdict(self)


def at_gate(status: int, reason: str, ended_at_s: float) -> RequestRecord:
    """Return the record of a request that no handler has seen; ended_at_s: in s since 1970."""
    return RequestRecord("", None, status, ended_at_s, 0.0, None, None, None, reason)


class RequestRecords:
    """Hands records to all who follow."""

    def __init__(self) -> None:
        self._followers: set[asyncio.Queue[RequestRecord]] = set()

    def note(self, record: RequestRecord) -> None:
        """Tell everybody."""
        for follower in self._followers:
            if not follower.full():
                follower.put_nowait(record)

    @contextmanager
    def followed(self) -> Generator[asyncio.Queue[RequestRecord]]:
        """Give what comes from now on."""
        queue: asyncio.Queue[RequestRecord] = asyncio.Queue(MOST_UNREAD)
        self._followers.add(queue)
        try:
            yield queue
        finally:
            self._followers.discard(queue)


def tokens_in(usage: Mapping[str, Any], name: str) -> int | None:
    """Return a count of an engine; None where there is none."""
    found = usage.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
