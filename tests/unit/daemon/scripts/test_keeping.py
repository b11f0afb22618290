"""The process that keeps a script's part judges locks of GPUs as a daemon does."""

from pathlib import Path

import pytest

from jupiterd.daemon.scripts import keeping
from jupiterd.gang import device_locks
from jupiterd.gang.scripts import keeper
from jupiterd.hardware.nvidia import computing_pids


def test_a_keeper_has_the_driver_say_whose_locks_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges: list[object] = []
    monkeypatch.setattr(device_locks._holders, "computing", lambda _: None)
    monkeypatch.setattr(keeper, "main", lambda _: judges.append(device_locks._holders.computing))
    keeping.main(tmp_path)
    assert judges == [computing_pids]
