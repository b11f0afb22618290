"""An endpoint that lasts as long as its command: opened at the daemon, and followed.

Owns the call to the daemon's own socket. Its end, however it comes, ends the endpoint. Doesn't know
what lines look like (`serve_lines`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

import httpx

from jupiterd.client.reachability import check_listens, unreachable
from jupiterd.client.socket_path import SocketPath
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.serve.serve_lines import opened_lines, request_line
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import DaemonUnreachableError, JupiterError, from_wire
from jupiterd.locations import SERVE_SOCKET

PLACE: Final = "/jupiter/serve"
CONNECT_S: Final = 5.0


@dataclass(frozen=True)
class WantedEndpoint:
    """What was typed; None: the daemon's default."""

    models: tuple[str, ...]
    port: int | None
    host: str | None
    token: str | None
    """The file, by its whole path."""
    cors: tuple[str, ...]
    pinned: bool
    engine: str | None

    def to_plain(self) -> dict[str, Any]:
        """Return what is sent."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def serve_until_interrupted(
    state_dir: Path, wanted: WantedEndpoint, console: Console, *, is_dry_run: bool
) -> None:
    """Show the endpoint and each request to it until Ctrl-C, or only check it.

    Raises:
        DaemonUnreachableError: no daemon answers, or it ended meanwhile.
        JupiterError: the endpoint can't be opened.
    """
    try:
        for told in _told(state_dir, {**wanted.to_plain(), "dry_run": is_dry_run}):
            _show(console, told, is_dry_run=is_dry_run)
    except KeyboardInterrupt:
        console.notice("the endpoint is closed")
        return
    if not is_dry_run:
        raise unreachable(state_dir)


def _told(state_dir: Path, body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what the daemon tells, line by line."""
    timeout = httpx.Timeout(None, connect=CONNECT_S)
    if not (state_dir / SERVE_SOCKET).exists():
        raise _not_serving(state_dir)
    try:
        with (
            SocketPath(state_dir, SERVE_SOCKET) as path,
            httpx.HTTPTransport(uds=str(path.short)) as transport,
            httpx.Client(transport=transport, timeout=timeout, trust_env=False) as client,
            client.stream("POST", f"http://jupiterd{PLACE}", json=body) as answer,
        ):
            if not answer.is_success:
                raise _strange(answer.status_code)
            for line in answer.iter_lines():
                yield _decoded(line)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise _not_serving(state_dir) from error
    except httpx.HTTPError:  # it ended in the middle
        return


def _not_serving(state_dir: Path) -> JupiterError:
    """Return why nobody answers; raises DaemonUnreachableError where no daemon does at all."""
    check_listens(state_dir)
    return DaemonUnreachableError(
        "this jupiterd answers, but not for models: it is starting, or older than jupiterctl",
        "wait a moment, or restart jupiterd",
    )


def _show(console: Console, told: Mapping[str, Any], *, is_dry_run: bool) -> None:
    match told:
        case {"error": {"code": str(code), "message": str(message), "hint": str(hint)}}:
            raise from_wire(code, message, hint)
        case {"endpoint": dict(found)}:
            endpoint = cast("dict[str, Any]", found)
            document = {"schema": SCHEMA, "endpoint": endpoint}
            console.show(document, lambda: opened_lines(endpoint, is_dry_run=is_dry_run))
        case {"request": dict(found)}:
            request = cast("dict[str, Any]", found)
            document = {"schema": SCHEMA, "request": request}
            console.show(document, lambda: [request_line(request)], is_quoted=True)
        case _:
            raise _strange(0)


def _decoded(line: str) -> Mapping[str, Any]:
    try:
        found: object = json.loads(line)
    except ValueError:
        found = None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _strange(status: int) -> JupiterError:
    said = f" (HTTP status {status})" if status else ""
    return JupiterError(
        f"jupiterd's answer can't be read{said}",
        "restart jupiterd, so that it runs what jupiterctl version shows",
    )
