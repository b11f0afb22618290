import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from jupiterd.errors import DeviceBusyError
from jupiterd.processes.device_locks import device_locked, gpus_locked, holder_now
from jupiterd.processes.script import start_script
from jupiterd.processes.script_plan import RankOrder, ScriptOrder

BOTH = ("GPU-a", "GPU-b")


async def test_no_gang_gets_a_gpu_of_a_script_and_no_script_that_of_a_gang(tmp_path: Path):
    async with gpus_locked(BOTH, "run-1", tmp_path) as locks:
        assert len(locks) == 2
        assert holder_now("GPU-b", tmp_path).startswith("a script, run-1")
        with pytest.raises(DeviceBusyError, match="held by a script, run-1"):
            async with device_locked("GPU-a", "a gang", tmp_path):
                pass
    async with device_locked("GPU-a", "a gang", tmp_path):
        with pytest.raises(DeviceBusyError, match="held by a gang"):
            async with gpus_locked(BOTH, "run-2", tmp_path):
                pass
        assert not holder_now("GPU-b", tmp_path), "what was taken before is given back"


async def test_a_lock_lives_as_long_as_a_rank_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    locks = tmp_path / "locks"
    monkeypatch.setattr(
        "jupiterd.processes.script.gpus_locked",
        lambda uuids, run: gpus_locked(uuids, run, locks),
    )
    program = "import os, signal; print('up', flush=True); signal.pause()"
    order = ScriptOrder((sys.executable, "-c", program), str(tmp_path), (RankOrder(0, {}),))
    async with asyncio.timeout(20), start_script(replace(order, gpus=BOTH), {}) as group:
        await anext(group.events())
        (pid,) = group.pids.values()
        opened = {Path(file.path).name for file in psutil.Process(pid).open_files()}
        assert {"GPU-a.lock", "GPU-b.lock"} <= opened
        assert holder_now("GPU-a", locks)
    assert not holder_now("GPU-a", locks)
