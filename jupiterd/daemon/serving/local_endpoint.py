"""The endpoint on this machine's own socket: all models, folders, and opening endpoints on ports.

Owns what only this machine's user may ask. An endpoint that `jupiterctl model serve` opens lasts as
long as its connection. Doesn't know how any model is run.
"""

import asyncio
import json
import logging
import socket
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, cast

from aiohttp import web

from jupiterd.cluster.serving.engine_choice import AUTO
from jupiterd.cluster.serving.promotion_follow import PROMOTED
from jupiterd.cluster.serving.request_error import refused
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.endpoint_access import Gate
from jupiterd.daemon.serving.endpoint_plan import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    EndpointPlan,
    checked_plan,
)
from jupiterd.daemon.serving.endpoint_server import application_of, listening, served
from jupiterd.daemon.serving.endpoints import Endpoint, Endpoints
from jupiterd.daemon.serving.engines.model_files import check_folder
from jupiterd.daemon.serving.named_models import BASE
from jupiterd.daemon.serving.request_records import RequestRecords
from jupiterd.daemon.serving.served_names import AllNames, ListedNames
from jupiterd.errors import InvalidSettingError, JupiterError
from jupiterd.ports import Address
from jupiterd.protocol.local_query import refusal_fields

log = logging.getLogger(__name__)

MOST_PORT: Final = 65535
MAY_COME: Final = (PROMOTED, BASE)
"""Names that have a model sooner or later."""
LINES: Final = "application/x-ndjson"


async def serve_locally(bound: socket.socket, endpoints: Endpoints) -> None:
    """Serve until it is cancelled."""
    names = AllNames(endpoints.replica)
    gate, records = Gate(None), RequestRecords()
    line, cards = endpoints.line, endpoints.cards
    app = application_of(gate, names, endpoints.answers, line, records, cards)
    app.router.add_post("/jupiter/serve", OpensEndpoints(endpoints).serve)
    async with served(app, bound.dup()):
        await asyncio.Event().wait()


class OpensEndpoints:
    """Handles /jupiter/serve: what `jupiterctl model serve` asks for."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Open an endpoint for as long as the caller listens; each line tells something of it.

        {"endpoint": {"url": ..., "models": [...], "missing": {...}}}
        {"request": {...}}        one that is over
        {"error": {"code": ..., "message": ..., "hint": ...}}
        """
        wanted = _wanted(await request.read())
        try:
            plan = await asyncio.to_thread(_plan, wanted)
            await asyncio.to_thread(check_folders, self._check_names(plan))
            if wanted.get("dry_run") is True:
                return _line_response(await self._tried(plan))
            async with self._endpoints.opened(plan) as endpoint:
                return await self._followed(request, endpoint)
        except JupiterError as error:
            return _line_response({"error": refusal_fields(error)})

    def _check_names(self, plan: EndpointPlan) -> list[ServedModel]:
        """Return the models that there are by now; one that may come later can be missing.

        Raises:
            JupiterError: a name means nothing.
        """
        names = ListedNames(self._endpoints.replica, plan.models)
        return [names.model(name) for name in names.listed if name not in MAY_COME]

    async def _tried(self, plan: EndpointPlan) -> Mapping[str, Any]:
        """See that the port is free and say which models there are, without serving any."""
        (await listening(plan.address)).close()
        return {"endpoint": self._described(plan, plan.address)}

    async def _followed(self, request: web.Request, endpoint: Endpoint) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_type = LINES
        await response.prepare(request)
        await response.write(_line({"endpoint": self._described(endpoint.plan, endpoint.address)}))
        with endpoint.records.followed() as records:
            while True:
                record = await records.get()
                await response.write(_line({"request": record.to_plain()}))

    def _described(self, plan: EndpointPlan, address: Address) -> Mapping[str, Any]:
        names = ListedNames(self._endpoints.replica, plan.models)
        return {
            "url": f"http://{address}/v1",
            "models": names.listed,
            "missing": {name: why for name in names.listed if (why := _missing(names, name))},
            "has_token": bool(plan.token),
            "pinned": plan.is_pinned,
        }


def check_folders(models: Iterable[ServedModel]) -> None:
    """Raise CorruptWeightsError where a folder of this machine is one that no engine can load."""
    for model in models:
        if model.folder:
            check_folder(model.name, Path(model.folder))


def _missing(names: ListedNames, name: str) -> str:
    """Return why a name has no model now; empty where it has one."""
    try:
        names.model(name)
    except JupiterError as error:
        return f"{error.message}; {error.hint}"
    return ""


def _wanted(body: bytes) -> Mapping[str, Any]:
    try:
        found: object = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise refused("what is to be served can't be read") from error
    if not isinstance(found, dict):
        raise refused("what is to be served must be an object")
    return cast("dict[str, Any]", found)


def _plan(wanted: Mapping[str, Any]) -> EndpointPlan:
    """Return the checked wish of a caller, who is this machine's user."""
    host, port = str(wanted.get("host") or DEFAULT_HOST), wanted.get("port", DEFAULT_PORT)
    if not isinstance(port, int) or not 0 <= port <= MOST_PORT:
        raise InvalidSettingError(f"port must be from 0 to {MOST_PORT}, not {port!r}")
    return checked_plan(
        _texts(wanted, "models"),
        Address(host, port),
        str(wanted.get("token") or ""),
        _texts(wanted, "cors"),
        is_pinned=wanted.get("pinned") is True,
        engine=str(wanted.get("engine") or AUTO),
    )


def _texts(wanted: Mapping[str, Any], name: str) -> list[str]:
    found = wanted.get(name) or []
    if not isinstance(found, list):
        raise InvalidSettingError(f"{name} must be a list, not {found!r}")
    return [str(each) for each in cast("list[object]", found)]


def _line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


def _line_response(said: Mapping[str, Any]) -> web.Response:
    return web.Response(status=HTTPStatus.OK, body=_line(said), content_type=LINES)
