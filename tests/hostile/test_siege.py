"""Two real daemons while strangers do their worst: the cluster must not notice.

Set JUPITER_SIEGE=long for ten seconds and 10,000 names instead of three and 3,000.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupiterd.net.open_port.connection_limits import EACH_MEMBER, EACH_STRANGER
from tests.support.daemons.cluster import Cluster, Daemon, Document
from tests.support.daemons.surroundings import own_network

pytestmark = [
    pytest.mark.full,
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.cores(2),  # whoever attacks takes one, and what waits for the other piles up
]

FLOOD_S = 10.0 if os.environ.get("JUPITER_SIEGE") == "long" else 3.0
LOOK_S = 0.1
AFTER_S = 1.0
"""An attack's end is looked at too."""

ALARM_WITHIN_S = 10.0
MAX_GROWTH_MB = 20.0
MAX_SILENCE_S = 3.0
"""Twice a second they beat; a member is suspect after five."""


@dataclass
class Siege:
    """What was seen during one attack."""

    result: dict[str, Any]
    growth_mb: float = 0.0
    states: set[str] = field(default_factory=set[str])
    silence_s: float = 0.0
    slowest_status_s: float = 0.0


class Besieged(Cluster):
    """Two daemons of a closed cluster, in a network of their own with whoever attacks them."""

    def __init__(self, daemons: Sequence[Daemon], prefix: Sequence[str], folder: Path) -> None:
        super().__init__(daemons)
        self._prefix = prefix
        self._folder = folder
        self.leader = self[0]
        self.port = 0

    async def settle(self) -> None:
        """Wait until they are one cluster, and close it."""
        view = (await self.meet())[0]
        self.leader = self.by_id(view["cluster"]["leader"], view)
        row = next(row for row in view["nodes"] if row["name"] == self.leader.name)
        self.port = int(row["addresses"][0].rpartition(":")[2])
        closed = await asyncio.to_thread(self.ctl, "cluster", "close")
        assert closed.returncode == 0, closed.stderr

    async def under(self, attack: str, amount: int, seconds: float) -> Siege:
        """Carry out an attack on the leader, and watch both daemons meanwhile."""
        arguments = [attack, str(self.port), str(self._folder), str(amount), str(seconds)]
        attacker = await asyncio.create_subprocess_exec(
            *self._prefix, sys.executable, "-m", "tests.hostile.attack", *arguments,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        siege = Siege({})
        ended = asyncio.ensure_future(attacker.communicate())
        try:
            await self._watch(siege, ended)
        finally:
            with contextlib.suppress(ProcessLookupError):
                attacker.kill()  # where what was seen isn't what is wanted
            output, _ = await ended
        siege.result = json.loads(output)
        print(f"{attack} {amount} {seconds:g} s: {siege}")
        return siege

    async def _watch(self, siege: Siege, ended: "asyncio.Future[tuple[bytes, bytes]]") -> None:
        """Look at both daemons until a while after the attack."""
        before = self._rss_mb()
        until_s = time.monotonic() + AFTER_S
        while time.monotonic() < until_s:
            if not ended.done():
                until_s = time.monotonic() + AFTER_S
            await self._look(siege)
            grown = [now - then for now, then in zip(self._rss_mb(), before, strict=True)]
            siege.growth_mb = max(siege.growth_mb, *grown)
            await asyncio.sleep(LOOK_S)

    @contextlib.asynccontextmanager
    async def crowded(self, amount: int, seconds: float) -> AsyncGenerator[int]:
        """Have a stranger hold connections to the leader meanwhile; yields how many it holds."""
        arguments = ["crowd", str(self.port), str(self._folder), str(amount), str(seconds)]
        attacker = await asyncio.create_subprocess_exec(
            *self._prefix, sys.executable, "-m", "tests.hostile.attack", *arguments,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert attacker.stdout is not None
        try:
            yield json.loads(await attacker.stdout.readline())["holds"]
            assert attacker.returncode is None, "it has let go before"
        finally:
            with contextlib.suppress(ProcessLookupError):
                attacker.kill()
            await attacker.communicate()

    async def alarmed(self, code: str) -> Document:
        """Return the leader's status once it shows this alarm: it looks for alarms at intervals."""
        deadline_s = time.monotonic() + ALARM_WITHIN_S
        while time.monotonic() < deadline_s:
            view = await self.leader.ask()
            if view is not None and code in {line["code"] for line in view["health"]}:
                return view
            await asyncio.sleep(LOOK_S)
        raise AssertionError(self.failure_text(f"no {code} within {ALARM_WITHIN_S:g} s"))

    async def _look(self, siege: Siege) -> None:
        for daemon in self.daemons:
            began_s = time.monotonic()
            view = await daemon.ask()
            assert view is not None, self.failure_text("no status")
            siege.slowest_status_s = max(siege.slowest_status_s, time.monotonic() - began_s)
            for row in view["nodes"]:
                siege.states.add(row["state"])
                siege.silence_s = max(siege.silence_s, row["last_heard_s"] or 0.0)

    def _rss_mb(self) -> list[float]:
        return [psutil.Process(daemon.pid).memory_info().rss / 1e6 for daemon in self.daemons]


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Generator[Besieged]:
    folder = tmp_path_factory.mktemp("siege")
    with own_network() as prefix:
        daemons = [Daemon(folder, name, prefix) for name in ("node-1", "node-2")]
        try:
            for daemon in daemons:
                daemon.start()
            cluster = Besieged(daemons, prefix, folder)
            asyncio.run(cluster.settle())
            yield cluster
        finally:
            for daemon in daemons:
                daemon.end()


def assert_undisturbed(siege: Siege) -> None:
    assert siege.states == {"alive"}
    assert siege.silence_s < MAX_SILENCE_S
    assert siege.slowest_status_s < 2.0


async def refused(besieged: Besieged) -> dict[str, int]:
    view = await besieged.leader.ask()
    assert view is not None
    return view["refused"]


async def test_connections_that_say_nothing_are_closed_after_seconds(besieged: Besieged) -> None:
    siege = await besieged.under("silent", 200, 9.0)
    assert_undisturbed(siege)
    assert siege.result["ended"] == 200
    assert 4.0 < siege.result["last_s"] < 8.0
    assert siege.growth_mb < MAX_GROWTH_MB


async def test_connections_that_only_shake_hands_are_bounded_in_number(besieged: Besieged) -> None:
    siege = await besieged.under("idle", 400, 0.5)
    assert_undisturbed(siege)
    # The members answer at the same address, so it is theirs as well.
    assert EACH_STRANGER <= siege.result["held"] <= EACH_MEMBER
    assert siege.result["refused"] == 400 - siege.result["held"]
    assert siege.growth_mb < 2 * MAX_GROWTH_MB


async def test_calls_that_are_never_finished_are_refused_beyond_a_few(besieged: Besieged) -> None:
    siege = await besieged.under("streams", 300, 1.0)
    assert_undisturbed(siege)
    assert siege.result["came"]["reset"] >= 290
    assert siege.growth_mb < MAX_GROWTH_MB


async def test_a_thousand_wishes_to_join_a_second_disturb_nobody(besieged: Besieged) -> None:
    siege = await besieged.under("joins", 1000, FLOOD_S)
    assert_undisturbed(siege)
    assert siege.growth_mb < MAX_GROWTH_MB
    answers = siege.result["answers"]
    assert set(answers) <= {"REFUSED", "too-often", "UNAVAILABLE"}
    assert answers["too-often"] > answers["REFUSED"]
    counts = await refused(besieged)
    assert counts["bad-token"] == counts["not-let-in"] == answers["REFUSED"]
    assert counts["too-often"] >= answers["too-often"]
    lines = besieged.leader.log.read_text()
    assert lines.count("kind=not-let-in") <= 65
    assert "\x1b" not in lines


async def test_thousands_of_names_announced_disturb_nobody(besieged: Besieged) -> None:
    siege = await besieged.under("names", int(1000 * FLOOD_S), FLOOD_S)
    assert_undisturbed(siege)
    assert siege.growth_mb < MAX_GROWTH_MB


async def test_a_stranger_who_holds_300_connections_keeps_no_member_out(besieged: Besieged) -> None:
    other = next(daemon for daemon in besieged.daemons if daemon is not besieged.leader)
    other.stop()
    async with besieged.crowded(300, 120.0) as held:
        other.start()
        began_s = time.monotonic()
        await besieged.meet()
        # The leader may have found it; a command that is typed there has to find the leader.
        typed = await asyncio.to_thread(besieged.ctl, "cluster", "close", daemon=other)
        took_s = time.monotonic() - began_s
        view = await besieged.alarmed("port-crowded")
    print(f"held {held}, back after {took_s:.2f} s")
    assert held <= EACH_STRANGER
    assert typed.returncode == 0, besieged.failure_text(typed.stderr)
    assert view["refused"]["too-many-connections"] > 0
    assert "127.0.0.9" in besieged.leader.log.read_text()
    checked = await asyncio.to_thread(besieged.ctl, "status", "--check")
    assert checked.returncode == 0, checked.stdout
