"""A server that writes: anything that answers POST /chat/completions as OpenAI's does.

Owns how many requests are under way, and that what has come is handed on before anything else. An
answer may take as long as it takes: what is timed is the silence of the whole server, so a long
queue at a slow one is no reason to give up. Doesn't know templates, or how a single request is
asked (`server_client`).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

import httpx

from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.pace import MOST, RequestPace
from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer
from jupiterd.errors import WorkStoppedError
from jupiterd.workers.generate.engine import OnTokens, Request, Sampling, nobody
from jupiterd.workers.generate.server_client import ServerClient, ServerPatience
from jupiterd.workers.generate.server_connection import connected

CHARS_PER_TOKEN = 3
MAX_TOKENS = 8192
"""What a server's model is taken to hold; nobody says."""

LOOK_S = 0.2

_InFlight = dict["asyncio.Task[WrittenAnswer]", int]
"""What is under way, each with its request's number."""


class ServerEngine:
    """Writes by asking a server."""

    batch = 1024
    """All that there is: as many as pay are under way at any time."""
    specials: Sequence[str] = ("<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|endoftext|>")
    """Its tokenizer isn't here; these are the commonest."""

    def __init__(
        self,
        server: Generator,
        key: str = "",
        *,
        is_stopped: Callable[[], bool] = lambda: False,
        patience: ServerPatience | None = None,
        concurrency: int = MOST,
    ) -> None:
        """Take the server, the key that it is shown, if any, and the most requests at once."""
        self._key = key
        self._is_stopped = is_stopped
        self._most = concurrency
        self.pace = RequestPace(concurrency)
        self._client = ServerClient(server, patience or ServerPatience(), self.pace)

    def size(self, prompt: Prompt) -> int:
        """Return about how many tokens a prompt has."""
        return len(prompt.message) // CHARS_PER_TOKEN

    def fits(self, prompt: Prompt, max_tokens: int) -> bool:
        """Say whether a common model can hold a prompt and what is to be written."""
        return self.size(prompt) + max_tokens <= MAX_TOKENS

    def write(
        self, requests: Sequence[Request], sampling: Sampling, on_tokens: OnTokens = nobody
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        """Yield the answers as they come, and before an error all that have come.

        Raises:
            GeneratorUnreachableError: it doesn't answer, or asks for patience without end.
            GeneratorRefusedError: it doesn't want us, or doesn't have the model.
            WorkStoppedError: the daemon asked for an end.
        """
        loop = asyncio.new_event_loop()
        client = connected(self._key, self._most)
        waiting, in_flight = list(range(len(requests)))[::-1], _InFlight()
        self._client.be_alive()
        try:
            while waiting or in_flight:
                while waiting and len(in_flight) < self.pace.limit:
                    number = waiting.pop()
                    asking = self._client.answer(client, requests[number], sampling, on_tokens)
                    in_flight[loop.create_task(asking)] = number
                yield from self._come(loop, in_flight)
        finally:
            _end(loop, [*in_flight], client)

    def _come(
        self, loop: asyncio.AbstractEventLoop, in_flight: _InFlight
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        """Wait a moment and yield what has come; an error only behind that."""
        done = loop.run_until_complete(_first_of([*in_flight]))
        numbered = [(in_flight.pop(task), task) for task in done]
        yield from ((number, task.result()) for number, task in numbered if not task.exception())
        for _, task in numbered:
            task.result()
        if self._is_stopped():
            raise WorkStoppedError("generating was stopped")
        if in_flight:
            self._client.check_alive()


async def _first_of(
    tasks: "Sequence[asyncio.Task[WrittenAnswer]]",
) -> "set[asyncio.Task[WrittenAnswer]]":
    done, _ = await asyncio.wait(tasks, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
    return done


def _end(
    loop: asyncio.AbstractEventLoop,
    tasks: "Sequence[asyncio.Task[WrittenAnswer]]",
    client: httpx.AsyncClient,
) -> None:
    """End what is still asked, and close the connections: nobody waits for those answers."""
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    loop.run_until_complete(client.aclose())
    loop.close()
