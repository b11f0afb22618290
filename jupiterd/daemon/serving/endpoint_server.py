"""The HTTP server of an endpoint, on a port or on this machine's own socket.

Owns the paths, the bounds of requests, and the server's beginning and end. Imports aiohttp, which
takes 16 MB: whoever imports this module does so once models are to be served. Doesn't know models.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from jupiterd.cluster.serving.access import AccessRules
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.daemon.serving.answering import AnswersRequests
from jupiterd.daemon.serving.answers.endpoint_answers import AnswerHandlers
from jupiterd.daemon.serving.card.served_facts import TellsOfModels
from jupiterd.daemon.serving.endpoint_access import Gate
from jupiterd.daemon.serving.endpoint_models import ModelHandlers
from jupiterd.daemon.serving.endpoint_page import page
from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from jupiterd.daemon.serving.request_records import RequestRecords
from jupiterd.daemon.serving.served_names import NamesModels
from jupiterd.daemon.serving.waiting_line import WaitingLine
from jupiterd.errors import InvalidSettingError, PortInUseError
from jupiterd.ports import Address

MOST_BODY_BYTES: Final = 8 << 20
"""A context of a million tokens has less."""
BACKLOG: Final = 1024
KEEP_ALIVE_S: Final = 75.0
END_GRACE_S: Final = 0.5
"""For answers that are being written when an endpoint ends."""

_OF_HTTP: Final = logging.getLogger(f"{__name__}.http")
_OF_HTTP.setLevel(logging.CRITICAL)
"""Of aiohttp, which writes a traceback for whatever is no HTTP: anybody could fill the log so. What
goes wrong in handlers is logged by the gate."""


def application_of(
    gate: Gate,
    names: NamesModels,
    answers: AnswersRequests,
    line: WaitingLine,
    records: RequestRecords,
    cards: TellsOfModels | None = None,
) -> web.Application:
    """Return what handles the requests of one endpoint."""
    app = web.Application(middlewares=[gate.let_in], client_max_size=MOST_BODY_BYTES)
    asked = AnswerHandlers(names, answers, line, records)
    about = ModelHandlers(names, int(wall_s()), cards)
    app.add_routes(
        [
            web.post("/v1/chat/completions", asked.chat),
            web.post("/v1/completions", asked.completion),
            web.get("/v1/models", about.listed),
            web.get("/v1/models/{name:.+}", about.shown),
            web.get("/health", about.health),
            web.get("/", page),
            web.get("/{file}", page),
        ]
    )
    return app


def gate_of(plan: EndpointPlan, records: RequestRecords) -> Gate:
    """Return who may ask an endpoint on a port; records: hear of those who may not."""
    return Gate(AccessRules(plan.host, plan.origins), plan.token, records)


@asynccontextmanager
async def served(app: web.Application, bound: socket.socket) -> AsyncGenerator[None]:
    """Serve on a bound socket as long as the context is open."""
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        access_log=None,
        logger=_OF_HTTP,
        keepalive_timeout=KEEP_ALIVE_S,
        shutdown_timeout=END_GRACE_S,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, bound, backlog=BACKLOG).start()
        yield
    finally:
        await runner.cleanup()


async def listening(address: Address) -> socket.socket:
    """Return a socket at an address.

    Raises:
        PortInUseError: another program listens there, perhaps another endpoint.
        InvalidSettingError: this machine has no such address.
    """
    try:
        return await asyncio.to_thread(_bound, address)
    except (OSError, UnicodeError) as error:  # the latter of a name that can be no host's
        import errno

        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise PortInUseError(f"another program listens at {address}") from error
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidSettingError(
            f"nothing can listen at {address}: {reason}", "leave --host out, or name an own address"
        ) from error


def _bound(address: Address) -> socket.socket:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, *_, where = found[0]
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(where)
        bound.listen(BACKLOG)
        bound.settimeout(0)
    except BaseException:
        bound.close()
        raise
    return bound
