"""A machine of three goes: all who are left say so, and one of them sends word of it, once."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.support.daemon.hook_server import Hook, hook
from tests.support.daemon.two_nodes import until
from tests.support.daemons.cluster import LOOK_S, NAMES, Cluster, Daemon, Document, running

pytestmark = [pytest.mark.net, pytest.mark.timeout(180)]

IMPATIENT = (sys.executable, Path(__file__).parent / "impatient_daemon.py")
TIMEOUT_S = 60.0


def daemons(folder: Path, server: Hook) -> list[Daemon]:
    """Return three that send their alerts to one address, and meet nobody else's."""
    told = {"JUPITER_SCOPE": f"alerts-{folder.name}", "JUPITER_ALERTS_WEBHOOK": server.url}
    return [Daemon(folder, name, environment=told, command=IMPATIENT) for name in NAMES]


async def happened(cluster: Cluster, daemon: Daemon, text: str) -> Document:
    """Wait until a daemon's events have one with this text; return it."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                events = (await daemon.ask("events") or {}).get("events", [])
                for event in events:
                    if event["text"] == text:
                        return event
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise AssertionError(cluster.failure_text(f"{daemon.name} never told: {text}")) from None


def times_logged(daemon: Daemon, event: str) -> int:
    """Return how often a daemon's log has an event of a machine that is gone."""
    lines = daemon.log.read_text().splitlines()
    return sum(f" {event} " in line and "code=node-gone" in line for line in lines)


def codes(document: Document) -> list[str]:
    return [line["code"] for line in document["health"]]


async def test_a_machine_that_goes_is_alerted_of_once_and_over_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with hook(lambda _: 200) as server, running(daemons(tmp_path, server)) as cluster:
        view = (await cluster.meet())[0]
        lost = cluster.by_id(view["cluster"]["leader"], view)
        left = [daemon for daemon in cluster.daemons if daemon is not lost]
        lost.kill()
        for daemon in left:
            event = await happened(cluster, daemon, f"alert: {lost.name} is gone")
            assert (event["level"], event["code"]) == ("warning", "node-gone")
            assert event["node"] == view["cluster"]["leader"]
            status = await daemon.ask()
            assert codes(status).count("node-gone") == 1
            (line,) = (each for each in status["health"] if each["code"] == "node-gone")
            assert (line["severity"], line["title"]) == ("warning", f"{lost.name} is gone")
            assert line["hint"]
            assert line["age_s"] >= 1
            assert times_logged(daemon, "alert") == 1
            said = cluster.ctl("events", "--level", "warning", daemon=daemon).stdout
            assert f"alert: {lost.name} is gone" in said
        for daemon, other in (left, left[::-1]):
            log = cluster.ctl("logs", "--node", other.name, daemon=daemon)
            assert (log.returncode, log.stderr) == (0, "")
            assert f"title='{lost.name} is gone'" in log.stdout, "its log is read anywhere"
        await until(lambda: bool(server.bodies))
        (body,) = server.bodies
        told = json.loads(body)
        assert (told["alert"]["code"], told["alert"]["title"]) == (
            "node-gone",
            f"{lost.name} is gone",
        )
        assert told["node"]["name"] in {daemon.name for daemon in left}

        lost.start()
        for daemon in left:
            event = await happened(cluster, daemon, f"alert over: {lost.name} is gone")
            assert event["level"] == "info"
            assert times_logged(daemon, "alert_over") == 1
        for document in await cluster.meet():
            assert "node-gone" not in codes(document)
        await until(lambda: len(server.bodies) > 1)
        gone, back = (json.loads(body)["alert"] for body in server.bodies)
        assert (gone["state"], back) == ("raised", gone | {"state": "over", "at": back["at"]})
