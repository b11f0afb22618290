"""How a daemon's models come to be asked: its endpoints.

Owns putting them together, and the endpoint of jupiter.yaml. Doesn't know HTTP, nor who answers
behind them (`answers_wiring`).
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

from jupiterd.daemon.serving.card.served_facts import ServedFacts
from jupiterd.daemon.serving.endpoint_plan import EndpointPlan, checked_plan
from jupiterd.daemon.serving.endpoints import Endpoints
from jupiterd.errors import JupiterError
from jupiterd.ports import Address

if TYPE_CHECKING:
    from jupiterd.daemon.app.answers_wiring import Serving
    from jupiterd.daemon.artifacts.artifact_cache import ArtifactCache
    from jupiterd.daemon.ledger.replica import Replica
    from jupiterd.daemon.runtime.settings import Settings

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 300.0


class Served(Protocol):
    """The parts of a daemon that have to do with endpoints."""

    replica: "Replica"
    serving: "Serving"
    artifact_cache: "ArtifactCache"


def endpoints_of(node: Served) -> Endpoints:
    """Return what opens a daemon's endpoints; none is open yet."""

    def changed() -> None:
        node.serving.followers.serve(endpoints.models)

    cards = ServedFacts(node.replica, node.artifact_cache, node.serving.fleet.serving)
    endpoints = Endpoints(node.replica, node.serving.router, changed, cards)
    return endpoints


def plan_of(settings: "Settings") -> EndpointPlan | None:
    """Return the endpoint that jupiter.yaml or the flags ask for; None: they ask for none.

    Raises:
        InvalidSettingError, RefusedError: it can't be opened as it is written.
    """
    if not settings.serves:
        return None
    return checked_plan(
        settings.serve_models,
        Address(settings.serve_host, settings.serve_port),
        settings.serve_token,
        settings.serve_cors,
        is_pinned=settings.serve_pinned,
        engine=settings.serve_engine,
    )


async def keep_serving(endpoints: Endpoints, plan: EndpointPlan) -> None:
    """Serve for ever; where the port can't be had, say so once and try again now and then."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            async with endpoints.opened(plan):
                await asyncio.Event().wait()
        except (JupiterError, ImportError, OSError) as error:
            if pause_s == FIRST_PAUSE_S:
                extra = {"address": str(plan.address), "reason": str(error)}
                log.warning("models_not_served", extra={**extra, "again": "now and then"})
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
