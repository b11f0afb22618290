"""One request on its way to a server, and the pieces of its answer as they arrive.

Owns reading them: bounded in size, and every piece tells that the server lives. Doesn't know how
often anything is asked, or how many requests there are. Redirections aren't followed: the key would
go with them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx

from jupiterd.cycle.generation.answer_stream import CONTENT_TYPE, AnswerStream
from jupiterd.cycle.generation.server_protocol import OK, PATH, Again, Reply, read_reply

MAX_REPLY_BYTES: Final = 4 << 20
CONNECT_TIMEOUT_S: Final = 10.0

Alive = Callable[[int], None]
"""Called whenever something comes in, with how many tokens it holds, about."""

_TOO_LARGE: Final = Again(f"its answer is larger than {MAX_REPLY_BYTES >> 20} MiB")


def connected(key: str, most: int) -> httpx.AsyncClient:
    """Return a client for so many requests at once.

    No answer is timed out here: whoever asks sees whether the server is alive at all, which tells a
    long queue from a server that has gone.
    """
    return httpx.AsyncClient(
        headers={"Authorization": f"Bearer {key}"} if key else {},
        timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT_S),
        limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
        follow_redirects=False,
    )


async def send_request(
    client: httpx.AsyncClient, url: str, body: Mapping[str, Any], alive: Alive
) -> Reply:
    """Send one request and return what came of it; where there is no way to the server, `Again`."""
    try:
        async with client.stream("POST", f"{url}{PATH}", json=body) as response:
            alive(0)
            kind = response.headers.get("content-type", "")
            if response.status_code == OK and kind.startswith(CONTENT_TYPE):
                return await _streamed(response, alive)
            return await _whole(response, body, alive)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        message = str(error) or type(error).__name__
        return Again(f"it can't be reached: {message.splitlines()[0]}")


async def _whole(response: httpx.Response, body: Mapping[str, Any], alive: Alive) -> Reply:
    content = bytearray()
    async for piece in response.aiter_bytes():
        alive(0)
        content += piece
        if len(content) > MAX_REPLY_BYTES:
            return _TOO_LARGE
    return read_reply(response.status_code, response.headers, bytes(content), body)


async def _streamed(response: httpx.Response, alive: Alive) -> Reply:
    stream, line, size = AnswerStream(), b"", 0
    async for piece in response.aiter_bytes():
        *lines, line = (line + piece).split(b"\n")
        size += len(piece)
        if size > MAX_REPLY_BYTES:
            return _TOO_LARGE
        before = stream.pieces
        for each in lines:
            stream.feed(each.decode("utf-8", "replace").rstrip("\r"))
        alive(stream.pieces - before)
    stream.feed(line.decode("utf-8", "replace"))
    return stream.reply()
