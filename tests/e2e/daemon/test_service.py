"""A real jupiterd tells a real notify socket how it is, as systemd would hear it."""

import asyncio
import itertools
import os
import signal
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.client.question import answer_to
from tests.support.daemons.cluster import Daemon, running
from tests.support.daemons.service_socket import Heard, listening

pytestmark = [pytest.mark.smoke, pytest.mark.net, pytest.mark.timeout(60)]

READY_S = 30.0
WATCHDOG_S = 0.9
END_S = 15.0


@asynccontextmanager
async def watched_daemon(folder: Path, address: str) -> AsyncGenerator[tuple[Daemon, Heard]]:
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}
    daemon = Daemon(folder, "node-1", environment=environment)
    async with listening(address) as heard, running([daemon]):
        yield daemon, heard


@pytest.mark.parametrize(
    ("kind", "ends"),
    [("path", [signal.SIGTERM]), ("abstract", [signal.SIGHUP, signal.SIGHUP])],
    ids=["told to stop", "its terminal has closed"],
)
async def test_a_daemon_says_ready_once_it_answers_then_lives_and_stops(
    tmp_path: Path, kind: str, ends: list[signal.Signals]
) -> None:
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as short:
        address = f"@jupiter-test-{os.getpid()}" if kind == "abstract" else f"{short}/notify"
        async with watched_daemon(tmp_path, address) as (daemon, heard):
            await heard.until(lambda so_far: bool(so_far.all("READY")), READY_S)
            assert heard.all("READY")[0][1] == "1"
            assert await asyncio.to_thread(answer_to, "status", daemon.state_dir) is not None
            await heard.until(lambda so_far: len(so_far.all("WATCHDOG")) >= 6, 5 * WATCHDOG_S)
            at_s = [moment for moment, _ in heard.all("WATCHDOG")][-5:]
            assert max(b - a for a, b in itertools.pairwise(at_s)) < WATCHDOG_S / 2 + 0.2
            await heard.until(lambda so_far: "1 of 1" in so_far.all("STATUS")[-1][1], READY_S)
            for number in ends:
                daemon.process.send_signal(number)
            await heard.until(lambda so_far: bool(so_far.all("EXTEND_TIMEOUT_USEC")), END_S)
            assert heard.all("STOPPING")[0][1] == "1"
            assert await asyncio.to_thread(daemon.process.wait, END_S) == 0


async def test_a_loop_that_stands_still_gives_no_sign_of_life(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as short:
        async with watched_daemon(tmp_path, f"{short}/notify") as (daemon, heard):
            await heard.until(lambda so_far: bool(so_far.all("READY")), READY_S)
            daemon.process.send_signal(signal.SIGSTOP)
            await heard.for_a_while(0.5)  # what was still on its way
            before = len(heard.said)
            await heard.for_a_while(2 * WATCHDOG_S)
            assert heard.said[before:] == []
            daemon.process.send_signal(signal.SIGCONT)
            await heard.until(lambda so_far: len(so_far.said) > before, READY_S)
