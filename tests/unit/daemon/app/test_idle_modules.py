"""Which modules a daemon has loaded that has founded its cluster, was asked, and has no work."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.support.daemons.cluster import NAMES, Daemon, running

pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]

NOTES_ITS_MODULES: Final = """
import atexit, sys
from pathlib import Path
note = Path(sys.argv.pop(1))
atexit.register(lambda: note.write_text("\\n".join(sys.modules), encoding="utf-8"))
from jupiterd.programs import jupiterd
jupiterd()
"""

NEEDLESS: Final = (
    "aiohttp",
    "httpx",
    "jupiterd.cycle.domain.domain",
    "jupiterd.cycle.gate.verdict",
    "jupiterd.cycle.phases.proxies",
    "jupiterd.cycle.phases.table",
    "jupiterd.cycle.runs.run_settings",
    "jupiterd.cycle.training.plan",
    "jupiterd.daemon.app.verb_wiring",
    "jupiterd.daemon.commands.verb_table",
    "jupiterd.daemon.cycles.cycle_driver",
    "jupiterd.daemon.gangs.gang_supervisor",
    "jupiterd.daemon.queries.cycle.cycle_document",
    "jupiterd.daemon.queries.slow_documents",
    "jupiterd.daemon.serving.endpoint_server",
    "jupiterd.daemon.serving.engine_pool",
    "jupiterd.doctor",
    "jupiterd.service",
    "jupiterd.workers",
    "numpy",
    "prometheus_client",
    "pydantic",
    "pydantic_core",
    "ruamel",
    "trafilatura",
)
"""Packages and modules that only work, or a question about it, needs."""

ASKED: Final = ("status", "cycle", "train", "links", "settings", "events")
"""What a dashboard asks for that looks at a cluster without work."""

ANSWER_TIMEOUT_S: Final = 30.0
LOOK_S: Final = 0.1


async def test_a_daemon_without_work_loads_nothing_that_only_work_needs(tmp_path: Path) -> None:
    note = tmp_path / "modules"
    command = (sys.executable, "-P", "-c", NOTES_ITS_MODULES, note)
    async with running([Daemon(tmp_path, NAMES[0], command=command)]) as cluster:
        await cluster.meet()
        for noun in ASKED:
            await until_answered(cluster[0], noun)
        await asyncio.to_thread(cluster[0].stop)
        loaded = note.read_text(encoding="utf-8").splitlines()
        assert "jupiterd.daemon.app.node" in loaded, cluster.failure_text(
            "the daemon noted nothing"
        )
        assert needless_among(loaded) == []


async def until_answered(daemon: Daemon, noun: str) -> None:
    """Ask for a document until it comes: a machine with much to do lets a call time out."""
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        while await daemon.ask(noun) is None:  # noqa: ASYNC110 - it is asked
            await asyncio.sleep(LOOK_S)


def needless_among(loaded: Sequence[str]) -> list[str]:
    """Return which of these modules an idle daemon has no use for."""
    within = tuple(f"{name}." for name in NEEDLESS)
    return sorted(name for name in loaded if name in NEEDLESS or name.startswith(within))
