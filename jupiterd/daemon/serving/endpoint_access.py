"""The gate of the endpoint: errors in OpenAI's form, hosts, origins and the token.

Owns what comes before and after every handler. The rules are `cluster.serving.access`'s. Doesn't
know what is answered.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from aiohttp import hdrs, web

from jupiterd.cluster.serving.access import AccessRules, bearer_in, token_refusal
from jupiterd.cluster.serving.request_error import (
    OF_SERVER,
    ErrorAnswer,
    RequestError,
    answer_of,
)
from jupiterd.daemon.runtime.clock import now_s, wall_s
from jupiterd.daemon.serving.request_records import RequestRecords, at_gate
from jupiterd.errors import JupiterError

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN_BEGIN: Final = "/v1/"
"""Paths that begin so want the token; the page and the state of health are open."""

HEADERS: Final = web.RequestKey("headers", dict[str, str])
"""Of a request: what each response to it has, for those that are sent before they are whole."""

TELL_EVERY_S: Final = 1.0
"""Between two refusals at the gate that are told."""

_SAFE_HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


@dataclass(frozen=True)
class Gate:
    """Who may ask one endpoint, and with which token."""

    rules: AccessRules | None
    """None: a socket that only this machine's user can open."""
    token: str = field(default="", repr=False)
    records: RequestRecords | None = None
    """Hear of requests that are refused here."""
    _told_s: list[float] = field(default_factory=lambda: [-TELL_EVERY_S], repr=False)

    @web.middleware
    async def let_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let a request in or refuse it; whatever happens, the form is OpenAI's."""
        origin = request.headers.get(hdrs.ORIGIN)
        if refusal := self._refusal(request, origin):
            self._tell(refusal)
            return error_response(refusal)
        headers = self._cors(request, origin)
        if request.method == hdrs.METH_OPTIONS and self.rules is not None:
            return web.Response(status=HTTPStatus.NO_CONTENT, headers=headers)
        request[HEADERS] = {**_SAFE_HEADERS, **headers}
        response = await self._answered(request, handler)
        if not response.prepared:
            response.headers.update(request[HEADERS])
        return response

    def _refusal(self, request: web.Request, origin: str | None) -> ErrorAnswer | None:
        if self.rules is None:
            return None
        host = request.headers.get(hdrs.HOST, "")
        refusal = self.rules.host_refusal(host) or self.rules.origin_refusal(origin, host)
        if refusal or request.method == hdrs.METH_OPTIONS:  # a preflight has no token
            return refusal
        wants_token = self.token and request.path.startswith(OPEN_BEGIN)
        return token_refusal() if wants_token and not self._has_token(request) else None

    def _tell(self, refusal: ErrorAnswer) -> None:
        """Tell whoever follows, now and then: a stranger may ask as often as it likes."""
        at_s = now_s()
        if self.records is not None and at_s - self._told_s[0] >= TELL_EVERY_S:
            self._told_s[0] = at_s
            self.records.note(at_gate(refusal.status, refusal.message, wall_s()))

    def _has_token(self, request: web.Request) -> bool:
        given = bearer_in(request.headers.get(hdrs.AUTHORIZATION, ""))
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())

    def _cors(self, request: web.Request, origin: str | None) -> Mapping[str, str]:
        if self.rules is None:
            return {}
        wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
        asked = wanted or "content-type" if request.method == hdrs.METH_OPTIONS else ""
        return self.rules.cors_headers(origin, asked)

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:  # aiohttp's own, such as for an unknown path
            return error_response(_of_http(error, request))
        except RequestError as error:
            return error_response(error.answer)
        except JupiterError as error:
            return error_response(answer_of(error))
        except ConnectionError:
            raise
        except Exception:
            log.exception("endpoint_failed", extra={"path": request.path})
            return error_response(
                ErrorAnswer(HTTPStatus.INTERNAL_SERVER_ERROR, "this is a mistake in Jupiter; the "
                            "daemon's log tells more", kind=OF_SERVER)
            )  # fmt: skip


def error_response(error: ErrorAnswer) -> web.Response:
    """Return the response that tells an error."""
    headers = {} if error.retry_after_s is None else {hdrs.RETRY_AFTER: str(error.retry_after_s)}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    return web.Response(
        status=error.status,
        body=error.body(),
        content_type="application/json",
        headers={**_SAFE_HEADERS, **headers},
    )


def _of_http(error: web.HTTPException, request: web.Request) -> ErrorAnswer:
    match error.status:
        case HTTPStatus.NOT_FOUND:
            message = f"there is no {request.method} {request.path} here"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            message = f"{request.path} can't be asked with {request.method}"
        case HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            message = "the body of the request is too large"
        case _:
            message = error.reason
    return ErrorAnswer(error.status, message)
