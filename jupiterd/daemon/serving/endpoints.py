"""The endpoints that are open on this node.

Owns which there are, what they have in common, and their sockets from beginning to end. Doesn't
know HTTP: what does is imported once an endpoint is opened. Doesn't know engines either.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final

from jupiterd.cluster.serving.engine_choice import AUTO
from jupiterd.daemon.serving.answering import AnswersRequests
from jupiterd.daemon.serving.card.served_facts import TellsOfModels
from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from jupiterd.daemon.serving.request_records import RequestRecords
from jupiterd.daemon.serving.served_names import KnowsState, ListedNames
from jupiterd.daemon.serving.waiting_line import WaitingLine
from jupiterd.ports import Address

log = logging.getLogger(__name__)

SERVER: Final = "jupiterd.daemon.serving.endpoint_server"


@dataclass(frozen=True, eq=False)
class Endpoint:
    """One that is open."""

    plan: EndpointPlan
    address: Address
    """Where it really listens."""
    records: RequestRecords = field(default_factory=RequestRecords)

    @property
    def url(self) -> str:
        """Return what clients are told."""
        return f"http://{self.address}/v1"


class Endpoints:
    """Opens endpoints, and knows those that are open."""

    def __init__(
        self,
        replica: KnowsState,
        answers: AnswersRequests,
        changed: Callable[[], None],
        cards: TellsOfModels | None = None,
    ) -> None:
        """Take what knows the models, who answers for them, and whom to tell of another endpoint.

        Args:
            replica: the ledger.
            answers: a router, or an engine.
            changed: called after one was opened or has ended.
            cards: tells of models; None: nothing is told but their names.
        """
        self.cards = cards
        self.replica, self.answers, self._changed = replica, answers, changed
        self.line = WaitingLine()
        self._open: list[Endpoint] = []

    @property
    def models(self) -> frozenset[str]:
        """Return the names that open endpoints were asked to serve."""
        return frozenset(name for each in self._open for name in each.plan.models)

    @property
    def is_pinned(self) -> bool:
        """Say whether an open endpoint goes before trainings."""
        return any(each.plan.is_pinned for each in self._open)

    @property
    def engine(self) -> str:
        """Return what models are loaded into here; the newest endpoint that names one decides."""
        named = [each.plan.engine for each in self._open if each.plan.engine != AUTO]
        return named[-1] if named else AUTO

    @asynccontextmanager
    async def opened(self, plan: EndpointPlan) -> AsyncGenerator[Endpoint]:
        """Serve as planned as long as the context is open.

        Raises:
            PortInUseError: another program has the port, perhaps another endpoint.
            InvalidSettingError: nothing can listen there.
        """
        await asyncio.to_thread(import_module, SERVER)  # takes half a second
        from jupiterd.daemon.serving.endpoint_server import (  # takes 16 MB, idle or not
            application_of,
            gate_of,
            listening,
            served,
        )

        bound = await listening(plan.address)
        endpoint = Endpoint(plan, Address(plan.host, bound.getsockname()[1]))
        names = ListedNames(self.replica, plan.models)
        records = endpoint.records
        gate = gate_of(plan, records)
        app = application_of(gate, names, self.answers, self.line, records, self.cards)
        async with served(app, bound):
            self._open.append(endpoint)
            self._changed()
            log.info("models_served", extra={"url": endpoint.url, "models": list(plan.models)})
            try:
                yield endpoint
            finally:
                self._open.remove(endpoint)
                self._changed()
                log.info("models_served_no_more", extra={"url": endpoint.url})
