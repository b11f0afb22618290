"""Talking to one server: what it has said of itself so far, and when it is asked again.

Owns the tries of a request, the pauses that the server asks for, the parameters that it doesn't
know, and since when it is silent. Doesn't know how many requests are under way, or what is made of
the answers.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import httpx

from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.pace import RequestPace
from jupiterd.cycle.generation.server_protocol import (
    Again,
    Rejected,
    changed_request,
    request_body,
)
from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.errors import GeneratorRefusedError, GeneratorUnreachableError
from jupiterd.workers.generate.engine import OnTokens, Request, Sampling
from jupiterd.workers.generate.server_connection import send_request

NO_ANSWER = WrittenAnswer("", 0, is_whole=False)


@dataclass(frozen=True)
class ServerPatience:
    """How long a server is asked."""

    tries: int = 9
    """Of one request that fails at once; their pauses come to three minutes, so that a server that
    is started again meanwhile loses nothing."""
    silent_s: float = 600.0
    """So long nothing at all may come from it while it is asked: a slow machine takes minutes to
    read a prompt, and some servers send an answer only when it is whole."""
    first_pause_s: float = 0.5
    """Before the second try; doubled before each further one."""
    longest_pause_s: float = 60.0
    """Also where the server asks for more: the item is tried again later."""
    is_busy_enough: bool = False
    """That it is busy is enough to be known of it: a request that finds it so has no answer."""
    most_rejected: int = 8
    """Requests that it calls wrong, without one that it answers, before it is given up."""


class ServerClient:
    """What is known of one server, and the asking."""

    def __init__(self, server: Generator, patience: ServerPatience, pace: RequestPace) -> None:
        self._server = server
        self._patience = patience
        self._pace = pace
        self._changes: dict[str, str | None] = {}
        """Parameters that it doesn't know: what they are called instead, or None."""
        self._not_before_s = 0.0
        self._alive_s = time.monotonic()
        """When it last showed that it is there, or was asked after a pause."""
        self._answered = 0
        self._rejected = 0

    def be_alive(self) -> None:
        """Take in that the server has sent something, or that it is asked from now on."""
        self._alive_s = time.monotonic()

    def check_alive(self) -> None:
        """Raise GeneratorUnreachableError where nothing has come from the server for too long."""
        limit_s = self._patience.silent_s
        if time.monotonic() - self._alive_s > limit_s:
            raise GeneratorUnreachableError(
                f"{self._server.url}: no sign of life for {limit_s:g} s"
            )

    async def answer(
        self, client: httpx.AsyncClient, request: Request, sampling: Sampling, on_tokens: OnTokens
    ) -> WrittenAnswer:
        """Ask until there is an answer; an empty one where there is none for this request alone.

        Raises:
            GeneratorUnreachableError: it can't be had, or only fails.
            GeneratorRefusedError: it doesn't want us, or doesn't have the model.
        """
        tried, answered_before = 0, self._answered
        while True:
            await self._pause(tried)
            began_s = time.monotonic()
            body = self._body(request, sampling)
            match await send_request(client, self._server.url, body, self._counting(on_tokens)):
                case WrittenAnswer() as written:
                    self._answered += 1
                    self._pace.answer(time.monotonic(), began_s, written.tokens)
                    return written
                case Again() as trouble:
                    tried += 1
                    self._leave_alone(trouble, began_s)
                    if tried >= self._patience.tries:
                        return self._failed(trouble, answered_before)
                case Rejected(changes=changes) if changes:
                    self._changes.update(changes)
                case Rejected() as rejected:
                    return self._without_answer(rejected)

    def _counting(self, on_tokens: OnTokens) -> OnTokens:
        def count(tokens: int) -> None:
            self.be_alive()
            on_tokens(tokens)

        return count

    def _body(self, request: Request, sampling: Sampling) -> dict[str, Any]:
        """Return what the server is sent, in the words that it knows."""
        body = request_body(
            self._server.model,
            request.prompt.message,
            sampling.max_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            seed=request.seed,
            stream=True,
            stream_options={"include_usage": True},
        )
        return changed_request(body, self._changes)

    async def _pause(self, tried: int) -> None:
        """Wait before a try: longer after each that failed, and as long as the server asked."""
        own_s = self._patience.first_pause_s * 2 ** (tried - 1) if tried else 0.0
        requested_s = self._not_before_s - time.monotonic()
        pause_s = min(max(own_s, requested_s, 0.0), self._patience.longest_pause_s)
        if pause_s:
            await asyncio.sleep(pause_s)
            self.be_alive()  # it had nothing to answer meanwhile

    def _leave_alone(self, trouble: Again, began_s: float) -> None:
        """Let no request go out for a while: what the server says to one is meant for all."""
        now_s = time.monotonic()
        if trouble.is_busy:
            self._pace.busy(now_s, began_s)
        if trouble.pause_s is not None:
            self._not_before_s = max(self._not_before_s, now_s + trouble.pause_s)

    def _failed(self, trouble: Again, answered_before: int) -> WrittenAnswer:
        """Give the request up where others were answered meanwhile, else the server."""
        is_known = trouble.is_busy and self._patience.is_busy_enough
        if self._answered > answered_before or is_known:
            return NO_ANSWER
        raise GeneratorUnreachableError(f"{self._server.url}: {trouble.reason}")

    def _without_answer(self, rejected: Rejected) -> WrittenAnswer:
        """Take a request that is called wrong for one without an answer, unless all of them are."""
        self._rejected += 1
        has_none = not self._answered and self._rejected >= self._patience.most_rejected
        if rejected.is_final or has_none:
            raise GeneratorRefusedError(f"{self._server.url}: {rejected.reason}")
        return NO_ANSWER
