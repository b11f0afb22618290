"""A nursery keeps one thread whatever it imports; its workers compute with their own number."""

import asyncio
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jupiterd.errors import WorkFailedError
from jupiterd.processes import forkserver
from jupiterd.processes.environment import worker_environment
from jupiterd.processes.forkserver import Forkserver, open_nursery
from jupiterd.processes.process import start_worker
from jupiterd.protocol.frames import RunTask, TaskFinished
from tests.support.processes import threaded_nursery
from tests.unit.processes.conftest import ROOT

pytestmark = [
    pytest.mark.skipif(not forkserver.CAN_FORK, reason="workers are forked on Linux alone"),
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has no second thread"),
]


def environment(threads: int, **more: str) -> dict[str, str]:
    return worker_environment("train", {"threads": threads}) | {"PYTHONPATH": str(ROOT)} | more


@pytest.fixture(autouse=True)
def threaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forkserver, "MODULE", threaded_nursery.MODULE)


async def told_by(nursery: Forkserver, folder: Path, wanted: dict[str, str]) -> dict[str, Any]:
    """Return what a worker that the nursery forks for this environment computes with."""
    to = folder / "told"
    order = RunTask(threaded_nursery.NAME, {"to": str(to)}, {}, str(folder))

    async def forked(environment: Any, descriptors: Any) -> Any:
        link, output, *others = descriptors
        return await nursery.bear(environment, link, output, others)

    async with start_worker(order, wanted, folder / "log", warm=forked) as worker:
        last = [frame async for frame in worker.frames()][-1]
    assert isinstance(last, TaskFinished), last
    return json.loads(to.read_text())


async def test_workers_of_one_nursery_each_compute_with_their_own_number_of_threads(
    tmp_path: Path,
) -> None:
    many = environment(16, OPENBLAS_NUM_THREADS="16", RAYON_NUM_THREADS="16")
    async with asyncio.timeout(60), open_nursery("torch", many, tmp_path / "nursery.log") as one:
        told = partial(told_by, one, tmp_path)
        first = await told(environment(2))
        second = await told(environment(3, OPENBLAS_NUM_THREADS="1"))
    assert (first["torch"], first["openblas"]) == (2, [2])
    assert (second["torch"], second["openblas"]) == (3, [1])
    assert first["variables"]["RAYON_NUM_THREADS"] is None, "that of the nursery"
    assert first["variables"]["OMP_NUM_THREADS"] == "2"


async def test_without_that_it_refuses_and_names_what_started_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forkserver, "ONE_THREAD", {"OMP_NUM_THREADS": "2"})
    expected = rf"it has [3-9] threads, started by importing .*{threaded_nursery.MODULE}:load"
    async with asyncio.timeout(60):
        async with open_nursery("torch", environment(2), tmp_path / "nursery.log") as one:
            with pytest.raises(WorkFailedError, match=expected):
                await told_by(one, tmp_path, environment(2))
