"""Starts the sinks for people: metrics and alerts where configured, and events.

Owns which sinks run, and that none of them ever ends the daemon or disturbs its work. Doesn't know
what any of them says.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from jupiterd.daemon.observability.alert_watch import AlertWatch
from jupiterd.daemon.observability.event_ring import EventRing
from jupiterd.daemon.queries.document_sources import DocumentSources
from jupiterd.daemon.runtime.clock import now_s

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 5.0
LONGEST_PAUSE_S: Final = 600.0
WELL_S: Final = 600.0


def start_sinks(
    sources: DocumentSources, alerts: AlertWatch, events: EventRing, group: asyncio.TaskGroup
) -> None:
    """Start the sinks that the settings ask for; what none needs isn't loaded."""
    settings = sources.settings
    address = settings.metrics
    if address is not None:
        from jupiterd.daemon.observability.metrics_server import serve_metrics

        work = run_forever("metrics", lambda: serve_metrics(sources, address))
        group.create_task(work, name="metrics")
    webhook = settings.alerts_webhook
    if webhook is not None:
        from jupiterd.daemon.observability.alert_sending import sender_of

        sender = sender_of(settings, sources.replica, alerts, webhook)
        group.create_task(run_forever("webhook", sender.run), name="webhook")
    for name, part in (("alerts", alerts), ("events", events)):
        group.create_task(run_forever(name, part.run), name=name)


async def run_forever(sink: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run a sink for ever: one that fails says so once, and begins again after ever longer.

    One that has run well for a while fails for the first time again.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        began_s = now_s()
        try:
            await run()
        except Exception as error:  # noqa: BLE001 - no sink is worth anybody's work
            if now_s() - began_s >= WELL_S:
                pause_s = FIRST_PAUSE_S
            if pause_s == FIRST_PAUSE_S:
                log.warning("sink_failed", extra={"sink": sink, "reason": repr(error)})
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
