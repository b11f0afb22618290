"""The page at the root of an endpoint, and its files.

Owns which files are given out, and the policy that keeps the page from loading or sending anything
elsewhere. Doesn't know what the page shows.
"""

import asyncio
from pathlib import Path
from typing import Final

from aiohttp import web

FOLDER: Final = Path(__file__).parent / "page"
FRONT: Final = "index.html"

_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
"""Of files that the page may consist of; there are no others."""

_SOURCES: Final = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "manifest-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
_POLICY: Final = "; ".join(f"{what} {where}" for what, where in _SOURCES.items())
_HEADERS: Final = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}

_NO_PAGE: Final = "Models answer here as OpenAI's API has it: GET /v1/models lists them.\n"


async def page(request: web.Request) -> web.Response:
    """Give out one file of the page."""
    found = await asyncio.to_thread(page_file, request.match_info.get("file") or FRONT)
    if found is not None:
        kind, body = found
        charset = "utf-8" if kind.startswith("text/") else None
        return web.Response(body=body, content_type=kind, charset=charset, headers=_HEADERS)
    if request.match_info.get("file"):
        raise web.HTTPNotFound
    return web.Response(text=_NO_PAGE, headers=_HEADERS)


def page_file(name: str, folder: Path = FOLDER) -> tuple[str, bytes] | None:
    """Return a file's type and content; None: it is none of the page's."""
    known = {each.name: each for each in folder.glob("*.*") if each.suffix in _TYPES}
    path = known.get(name)
    return None if path is None else (_TYPES[path.suffix], path.read_bytes())
