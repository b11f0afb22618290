"""Sending alerts to an address that people named.

Owns the queue, the time-outs, and trying again. Doesn't know which alerts are sent, or what they
look like. Nothing that happens here reaches anybody's work: an address that doesn't answer costs a
line in the log, and the address itself is never in it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import httpx

from jupiterd.cluster.health.alerts import Alert
from jupiterd.daemon.observability.webhook_forms import Message
from jupiterd.daemon.runtime.webhook import WebhookUrl

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 5.0
PAUSES_S: Final = (2.0, 10.0, 30.0, 120.0, 300.0)
"""Before it is tried again; after the last it isn't any more."""
MAX_WAITING: Final = 32

AGAIN: Final = frozenset({408, 425, 429})
"""Refusals that waiting may mend, besides all errors of the server's own."""


@dataclass(frozen=True)
class _Outcome:
    is_sent: bool
    may_mend: bool
    reason: str


class WebhookSender:
    """One address and the alerts that wait for it."""

    def __init__(
        self,
        webhook: WebhookUrl,
        write: Callable[[Alert], Message],
        on_sent: Callable[[Alert], None],
    ) -> None:
        """`write` makes the message of an alert when it waits no more."""
        self._webhook = webhook
        self._write = write
        self._on_sent = on_sent
        self._waiting: asyncio.Queue[Alert] = asyncio.Queue(MAX_WAITING)
        self._in_hand: Alert | None = None
        self._is_failing = False

    def offer(self, alert: Alert) -> None:
        """Queue an alert; where too many wait, the oldest is dropped."""
        if self._waiting.full():
            self._give_up(self._waiting.get_nowait(), "too many wait")
        self._waiting.put_nowait(alert)

    async def run(self) -> None:
        """Send one after another, for ever; begun again, with what was in hand when it failed."""
        async with httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False) as client:
            while True:
                alert, had_failed = self._in_hand, self._in_hand is not None
                alert = self._in_hand = alert or await self._waiting.get()
                try:
                    await self._deliver(client, alert)
                except Exception:
                    if had_failed:
                        self._in_hand = None
                        self._give_up(alert, "it can't be sent")
                    raise
                self._in_hand = None

    async def _deliver(self, client: httpx.AsyncClient, alert: Alert) -> None:
        message = self._write(alert)
        for pause_s in (*PAUSES_S, None):
            outcome = await self._post(client, message)
            if outcome.is_sent:
                self._is_failing = False
                self._on_sent(alert)
                return
            if pause_s is None or not outcome.may_mend:
                self._give_up(alert, outcome.reason)
                return
            self._complain(outcome.reason)
            await asyncio.sleep(pause_s)

    async def _post(self, client: httpx.AsyncClient, message: Message) -> _Outcome:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await _posted(client, self._webhook.reveal(), message)
        except TimeoutError:
            return _Outcome(is_sent=False, may_mend=True, reason="no answer in time")
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            # Its text may hold the address, which is a secret.
            return _Outcome(is_sent=False, may_mend=True, reason=type(error).__name__)

    def _complain(self, reason: str) -> None:
        if not self._is_failing:
            self._is_failing = True
            extra = {"to": str(self._webhook), "reason": reason, "again": "in a while"}
            log.warning("webhook_failed", extra=extra)

    def _give_up(self, alert: Alert, reason: str) -> None:
        extra = {"to": str(self._webhook), "code": alert.code, "reason": reason}
        log.warning("alert_not_sent", extra=extra)


async def _posted(client: httpx.AsyncClient, url: str, message: Message) -> _Outcome:
    """Post it, and read no more of the answer than its status."""
    headers: Mapping[str, str] = {"User-Agent": "jupiterd", **message.headers}
    async with client.stream("POST", url, content=message.body, headers=headers) as answer:
        status = answer.status_code
    is_sent = 200 <= status < 300
    return _Outcome(is_sent, status >= 500 or status in AGAIN, f"it answered {status}")
