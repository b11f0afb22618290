"""The process that keeps a script's part judges locks of GPUs as a daemon does."""

from pathlib import Path

import pytest

from jupiterd.daemon.scripts import supervisor_process
from jupiterd.hardware.nvidia import computing_pids
from jupiterd.processes import device_locks
from jupiterd.processes.scripts import script_supervisor


def test_a_keeper_has_the_driver_say_whose_locks_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges: list[object] = []
    monkeypatch.setattr(device_locks._holders, "computing", lambda _: None)
    monkeypatch.setattr(
        script_supervisor, "main", lambda _: judges.append(device_locks._holders.computing)
    )
    supervisor_process.main(tmp_path)
    assert judges == [computing_pids]
