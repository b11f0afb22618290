"""Who may see the dashboard in a browser: whoever has the address that was printed.

Owns the key and where it is looked for. Doesn't know what is shown. Whoever gets in can do all that
the dashboard can, and a port of this machine is open to all of its users and, through their
browsers, to every page that they visit: so an address without the key, and a page of another
origin, are refused. The page itself loads nothing from elsewhere, whatever its library would have.
"""

import re
import secrets
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

KEY: Final = "key"
"""The name of the key in the address."""


_ELSEWHERE: Final = r"""<link\b[^>]*href=["']https?://(?!{host}/)[^>]*>"""
_FONT: Final = """<style>@font-face { font-family: "Roboto Mono";
src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf"); }</style>"""
"""What the library fetches from a font server lies in it, too."""
_POLICY: Final = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


@web.middleware
async def own_page(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Take out of a page what it would load from elsewhere, and forbid the browser the rest."""
    response = await handler(request)
    if isinstance(response, web.Response) and response.content_type == "text/html":
        elsewhere = _ELSEWHERE.format(host=re.escape(request.host))
        response.text = re.sub(elsewhere, _FONT, response.text or "")
        response.headers["Content-Security-Policy"] = _POLICY.format(host=request.host)
        response.headers["Referrer-Policy"] = "no-referrer"
    return response


class KeyGuard:
    """One server's key, generated at each start, and the check of each request against it."""

    def __init__(self, origin: str) -> None:
        """Take the address of the server, such as `http://127.0.0.1:8000`."""
        self._origin = origin
        self._host = urlsplit(origin).netloc
        self._cookie = f"jupiter-{urlsplit(origin).port}"
        self._key = secrets.token_urlsafe(24)

    @property
    def address(self) -> str:
        """Return what to open; the browser keeps the key from then on."""
        return f"{self._origin}/?{KEY}={self._key}"

    @property
    def guard(self) -> Middleware:
        """Return what looks at each request before it is answered."""

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._require_own_page(request)
            if self._is_key(request.query.get(KEY)):
                # The key leaves the address, so that it isn't shown or saved with the page.
                found = web.HTTPFound("/")
                found.set_cookie(self._cookie, self._key, httponly=True, samesite="Strict")
                raise found
            if not self._is_key(request.cookies.get(self._cookie)):
                raise web.HTTPForbidden(text="open the address that jupiter-tui has printed")
            return await handler(request)

        return guard

    def _require_own_page(self, request: web.Request) -> None:
        """Refuse names that somebody points at this machine, and pages of others."""
        if (
            request.host != self._host
            or request.headers.get("Origin", self._origin) != self._origin
        ):
            raise web.HTTPForbidden(text=f"only {self._origin} is served here")

    def _is_key(self, given: str | None) -> bool:
        return given is not None and secrets.compare_digest(given.encode(), self._key.encode())
