"""An endpoint on a port of its own, in front of an engine that writes words.

Owns putting both together. Names are given; there is no cluster.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from jupiterd.daemon.serving.endpoint_server import application_of, gate_of, listening, served
from jupiterd.daemon.serving.request_records import RequestRecords
from jupiterd.daemon.serving.waiting_line import WaitingLine
from jupiterd.errors import ModelNotServedError
from jupiterd.ids import ArtifactId
from jupiterd.ports import Address
from tests.support.serving.word_engine import WordEngine

MODELS = ("promoted", "python/2")


class GivenCards:
    """What is told of models, by their names."""

    async def of(self, model: ServedModel) -> dict[str, Any]:
        return {"name": model.name, "chat": True, "context_tokens": 256}


class GivenNames:
    """Models that are there, without a ledger."""

    def __init__(self, names: Sequence[str] = MODELS) -> None:
        self._names = list(names)

    def model(self, name: str) -> ServedModel:
        if name not in self._names:
            raise ModelNotServedError(f"there is no model {name}")
        return ServedModel(name, ArtifactId("ab" * 32))

    def names(self) -> list[str]:
        return self._names


@dataclass(frozen=True)
class OpenEndpoint:
    """What a test asks, and looks at."""

    url: str
    engine: WordEngine
    records: RequestRecords
    client: httpx.AsyncClient


@asynccontextmanager
async def open_endpoint(
    plan: EndpointPlan | None = None, line: WaitingLine | None = None
) -> AsyncGenerator[OpenEndpoint]:
    """Serve, with a client that has no token."""
    plan = EndpointPlan(port=0) if plan is None else plan
    records = RequestRecords()
    async with WordEngine().open() as engine:
        bound = await listening(plan.address)
        gate, line = gate_of(plan, records), line or WaitingLine()
        app = application_of(gate, GivenNames(), engine, line, records, GivenCards())
        url = f"http://{Address('127.0.0.1', bound.getsockname()[1])}"
        limits = httpx.Limits(max_connections=None)
        async with (
            served(app, bound),
            httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as client,
        ):
            yield OpenEndpoint(url, engine, records, client)
