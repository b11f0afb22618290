"""A server that writes: anything that answers POST /chat/completions as OpenAI's does.

Owns how it is asked (a bounded number of requests at a time, again where that can help, never
faster than it says) and what its answers mean. Doesn't know templates. What a server says is
bounded in size, and redirections aren't followed: the key would go with them.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

import httpx

from jupiterd.cycle.generator import Generator
from jupiterd.cycle.templates.prompt import Prompt, Written
from jupiterd.errors import (
    GeneratorRefusedError,
    GeneratorUnreachableError,
    WorkStoppedError,
)
from jupiterd.workers.generate.engine import Request, Sampling
from jupiterd.workers.generate.server_replies import (
    Again,
    Rejected,
    Reply,
    changed_request,
    read_reply,
)

CONCURRENCY = 8
"""Requests at a time; servers on one GPU answer about so many together."""

CHARS_PER_TOKEN = 3
MAX_TOKENS = 8192
"""What a server's model is taken to hold; nobody says."""

LOOK_S = 0.2
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Patience:
    """How long a server is asked."""

    tries: int = 7
    """Of one request."""
    timeout_s: float = 300.0
    """Of one answer; a slow machine writes 800 tokens in that time."""
    first_pause_s: float = 0.5
    """Before the second try; doubled before each further one."""
    longest_pause_s: float = 60.0
    """Also where the server asks for more: the item is tried again later."""
    most_rejected: int = 8
    """Requests that it calls wrong, without one that it answers, before it is given up."""


class ServerEngine:
    """Writes by asking a server."""

    batch = 1024
    """All that there is: as many as are allowed are under way at any time."""
    specials: Sequence[str] = ("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>")
    """Its tokenizer isn't here; these are the commonest."""

    def __init__(
        self,
        server: Generator,
        key: str = "",
        *,
        is_stopped: Callable[[], bool] = lambda: False,
        patience: Patience | None = None,
        concurrency: int = CONCURRENCY,
    ) -> None:
        """Take the server, and the key that it is shown, if any."""
        self._server = server
        self._patience = patience or Patience()
        self._is_stopped = is_stopped
        self._concurrency = concurrency
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._changes: dict[str, str | None] = {}
        """Parameters that it doesn't know: what they are called instead, or None."""
        self._not_before_s = 0.0
        self._given_up = threading.Event()
        self._answered = 0
        self._rejected = 0

    def size(self, prompt: Prompt) -> int:
        """Return about how many tokens a prompt has."""
        return len(prompt.message) // CHARS_PER_TOKEN

    def fits(self, prompt: Prompt, max_tokens: int) -> bool:
        """Say whether a common model can hold a prompt and what is to be written."""
        return self.size(prompt) + max_tokens <= MAX_TOKENS

    def write(
        self, requests: Sequence[Request], sampling: Sampling
    ) -> Iterator[tuple[int, Written]]:
        """Yield the answers as they come.

        Raises:
            GeneratorUnreachableError: it doesn't answer, or asks for patience without end.
            GeneratorRefusedError: it doesn't want us, or doesn't have the model.
            WorkStoppedError: the daemon asked for an end.
        """
        with self._connected() as client, ThreadPoolExecutor(self._concurrency) as pool:
            waiting = {
                pool.submit(self._answer, client, request, sampling): number
                for number, request in enumerate(requests)
            }
            try:
                yield from self._as_they_come(waiting)
            finally:
                self._given_up.set()
                for future in waiting:
                    future.cancel()
        self._given_up.clear()

    def _connected(self) -> httpx.Client:
        timeout = httpx.Timeout(self._patience.timeout_s, connect=CONNECT_TIMEOUT_S)
        return httpx.Client(headers=self._headers, timeout=timeout, follow_redirects=False)

    def _as_they_come(
        self, waiting: Mapping[Future[Written], int]
    ) -> Iterator[tuple[int, Written]]:
        left = set(waiting)
        while left:
            done, left = wait(left, LOOK_S, FIRST_COMPLETED)
            for future in done:
                yield waiting[future], future.result()
            if self._is_stopped():
                raise WorkStoppedError("generating was stopped")

    def _answer(self, client: httpx.Client, request: Request, sampling: Sampling) -> Written:
        """Ask until there is an answer; runs in a thread of its own."""
        tried, reason = 0, ""
        while tried < self._patience.tries:
            self._pause(tried)
            match self._asked(client, self._body(request, sampling)):
                case Written() as written:
                    self._answered += 1
                    return written
                case Again() as trouble:
                    tried, reason = tried + 1, trouble.reason
                    self._leave_alone(trouble.pause_s)
                case Rejected(changes=changes) if changes:
                    self._changes.update(changes)
                case Rejected() as rejected:
                    return self._without_answer(rejected)
        raise GeneratorUnreachableError(f"{self._server.url}: {reason}")

    def _asked(self, client: httpx.Client, body: Mapping[str, Any]) -> Reply:
        try:
            return read_reply(client, self._server, body)
        except httpx.TimeoutException:
            return Again(f"no answer within {self._patience.timeout_s:g} s")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            told = str(error) or type(error).__name__
            return Again(f"it can't be reached: {told.splitlines()[0]}")

    def _pause(self, tried: int) -> None:
        """Wait before a try: longer after each that failed, and as long as the server asked."""
        own_s = self._patience.first_pause_s * 2 ** (tried - 1) if tried else 0.0
        asked_s = self._not_before_s - time.monotonic()
        longest_s = self._patience.longest_pause_s
        if self._given_up.wait(min(max(own_s, asked_s, 0.0), longest_s)):
            raise WorkStoppedError("generating was stopped")

    def _leave_alone(self, pause_s: float | None) -> None:
        """Let no request go out for a while: what the server says to one is meant for all."""
        if pause_s is not None:
            self._not_before_s = max(self._not_before_s, time.monotonic() + pause_s)

    def _body(self, request: Request, sampling: Sampling) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._server.model,
            "messages": [{"role": "user", "content": request.prompt.message}],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": request.seed,
        }
        return changed_request(body, self._changes)

    def _without_answer(self, rejected: Rejected) -> Written:
        """Take a request that is called wrong for one without an answer, unless all of them are."""
        self._rejected += 1
        has_none = not self._answered and self._rejected >= self._patience.most_rejected
        if rejected.is_final or has_none:
            raise GeneratorRefusedError(f"{self._server.url}: {rejected.reason}")
        return Written("", 0, is_whole=False)
