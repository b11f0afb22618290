"""The dashboard in a browser: each visitor gets one of their own, in a process of its own.

Owns the address and the command line of those. Doesn't know what they show, or who may see it.
"""

import logging
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jupiterd.errors import ExitCode, MissingExtraError
from jupiterd.locations import pip_install

if TYPE_CHECKING:
    from aiohttp import web

HOST = "127.0.0.1"
OPTION = "--serve"


def serve(port: int, arguments: Sequence[str]) -> int:
    """Serve until interrupted; `arguments` are those of the command line.

    Raises:
        MissingExtraError: textual-serve isn't installed.
    """
    try:
        from textual_serve.server import Server
    except ImportError as error:
        raise MissingExtraError(
            "a browser needs the package textual-serve", pip_install("jupiterd[serve]")
        ) from error
    from jupiter_tui.web.visitors import KeyGuard, own_page

    command = shlex.join([sys.executable, "-m", "jupiter_tui.main", *without_serve(arguments)])
    key_guard = KeyGuard(f"http://{HOST}:{port}")

    class Guarded(Server):
        """Lets in whoever has the address with the key in it."""

        async def _make_app(self) -> "web.Application":
            app = await super()._make_app()
            app.middlewares.extend((key_guard.guard, own_page))
            return app

        def initialize_logging(self) -> None:
            """Log as before, but no requests: the first one of each browser holds the key."""
            super().initialize_logging()
            logging.getLogger("aiohttp.access").disabled = True

        async def on_startup(self, app: "web.Application") -> None:  # noqa: ARG002
            print(f"open {key_guard.address}", flush=True)  # noqa: T201 - people are to click on it

    Guarded(command, host=HOST, port=port, title="Jupiter").serve()
    return ExitCode.OK


def without_serve(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the option that asked for a browser."""
    left: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == OPTION:
            following = next(words, "")
            left += [following] if following and not following.isdecimal() else []
        elif not word.startswith(f"{OPTION}="):
            left.append(word)
    return left
