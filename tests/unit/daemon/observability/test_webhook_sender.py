"""Alerts on their way to a real server on loopback: one that works, fails, hangs or is away."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from jupiterd.cluster.health.alerts import Alert
from jupiterd.cluster.values.severity import Severity
from jupiterd.daemon.observability import webhook_sender
from jupiterd.daemon.observability.webhook_forms import Message
from jupiterd.daemon.observability.webhook_sender import MAX_WAITING, WebhookSender
from jupiterd.daemon.runtime.webhook import WebhookUrl
from tests.support.daemon.hook_server import HANG, hook
from tests.support.daemon.two_nodes import until

pytestmark = pytest.mark.net


def alert(number: int) -> Alert:
    return Alert(f"verdict:{number}", "verdict", Severity.INFO, f"round {number}", "look", 0.0)


class Sending:
    """A sender at work, and what it says was sent."""

    def __init__(self, url: str) -> None:
        self.sent: list[str] = []
        self.sender = WebhookSender(
            WebhookUrl(url),
            lambda told: Message(told.title.encode(), {"X-Code": told.code}),
            lambda told: self.sent.append(told.key),
        )


@asynccontextmanager
async def sending(url: str) -> AsyncGenerator[Sending]:
    found = Sending(url)
    task = asyncio.ensure_future(found.sender.run())
    try:
        yield found
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(webhook_sender, "PAUSES_S", (0.01, 0.01, 0.01))
    caplog.set_level(logging.DEBUG)


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what the sender logged, and see to it that no line holds the secret."""
    for record in caplog.records:
        assert "s3cret" not in str(vars(record)) or record.name.startswith(("httpx", "httpcore"))
        if record.name.startswith(("httpx", "httpcore")):
            assert record.levelno < logging.WARNING  # below what the daemon's log lets through
    return [r.getMessage() for r in caplog.records if r.name.startswith("jupiterd")]


async def test_an_alert_is_posted_and_said_to_be_sent(caplog: pytest.LogCaptureFixture) -> None:
    async with hook(lambda _: 204) as server, sending(server.url) as on:
        on.sender.offer(alert(1))
        await until(lambda: on.sent == ["verdict:1"])
    assert server.bodies == [b"round 1"]
    assert server.heads[0].startswith("POST /secret-topic?key=s3cret HTTP/1.1")
    assert "x-code: verdict" in server.heads[0].lower()
    assert events(caplog) == []


async def test_a_server_that_fails_costs_one_line_and_gets_it_in_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hook(lambda before: 500 if before < 3 else 200) as server, sending(server.url) as on:
        on.sender.offer(alert(1))
        on.sender.offer(alert(2))
        await until(lambda: on.sent == ["verdict:1", "verdict:2"])
    assert [body.decode() for body in server.bodies] == [*["round 1"] * 4, "round 2"]
    assert events(caplog) == ["webhook_failed"]


async def test_one_that_always_fails_is_given_up_and_the_next_alert_has_its_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with hook(lambda before: 503 if before < 4 else 200) as server, sending(server.url) as on:
        on.sender.offer(alert(1))
        on.sender.offer(alert(2))
        await until(lambda: on.sent == ["verdict:2"])
    assert events(caplog) == ["webhook_failed", "alert_not_sent"]


async def test_a_server_that_hangs_is_left_after_a_while(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_sender, "TIMEOUT_S", 0.2)
    async with hook(lambda before: 200 if before else HANG) as server, sending(server.url) as on:
        on.sender.offer(alert(1))
        await until(lambda: on.sent == ["verdict:1"])
    assert len(server.bodies) == 2
    assert events(caplog) == ["webhook_failed"]


async def test_a_server_that_isnt_there_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    async with sending(f"http://127.0.0.1:{port}/s3cret") as on:
        on.sender.offer(alert(1))
        await until(lambda: "alert_not_sent" in events(caplog))
    assert on.sent == []


@pytest.mark.parametrize("status", [302, 400, 403, 404])
async def test_a_refusal_that_wont_mend_isnt_repeated_nor_a_redirection_followed(
    caplog: pytest.LogCaptureFixture, status: int
) -> None:
    async with hook(lambda _: status) as server, sending(server.url) as on:
        on.sender.offer(alert(1))
        await until(lambda: events(caplog) == ["alert_not_sent"])
    assert len(server.bodies) == 1
    assert on.sent == []


async def test_what_was_in_hand_when_sending_failed_is_sent_after_all_or_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def write(told: Alert) -> Message:
        if told.key in troubles:
            troubles.remove(told.key)
            raise ValueError("it can't be written")
        return Message(told.title.encode())

    troubles, sent = ["verdict:1", "verdict:2", "verdict:2"], list[str]()
    async with hook(lambda _: 200) as server:
        sender = WebhookSender(WebhookUrl(server.url), write, lambda told: sent.append(told.key))
        for number in (1, 2, 3):
            sender.offer(alert(number))
        for _ in range(3):
            with pytest.raises(ValueError, match="be written"):
                await sender.run()
        task = asyncio.ensure_future(sender.run())
        await until(lambda: sent == ["verdict:1", "verdict:3"])
        task.cancel()
        await asyncio.wait([task])
    assert events(caplog) == ["alert_not_sent"]


async def test_too_many_that_wait_cost_the_oldest(caplog: pytest.LogCaptureFixture) -> None:
    async with hook(lambda _: 200) as server:
        found = Sending(server.url)
        for number in range(MAX_WAITING + 2):
            found.sender.offer(alert(number))
        assert events(caplog) == ["alert_not_sent"] * 2
        task = asyncio.ensure_future(found.sender.run())
        await until(lambda: len(found.sent) == MAX_WAITING)
        task.cancel()
        await asyncio.wait([task])
    assert found.sent[0] == "verdict:2"
