"""What `make gpu-check` says of a nursery that forks, and of one that can't."""

from pathlib import Path

import pytest

from jupiterd.errors import WorkFailedError
from jupiterd.processes import forkserver
from jupiterd.processes.environment import worker_environment
from tests.bench.gpu import nursery
from tests.bench.gpu.nursery import rows

pytestmark = pytest.mark.skipif(not forkserver.CAN_FORK, reason="workers are forked on Linux alone")

ROOT = Path(__file__).resolve().parents[3]
REASON = "the nursery can't fork: it has 17 threads"


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the nursery import no engine: it costs seconds."""
    monkeypatch.setattr(forkserver, "MODULE", "tests.support.processes.light_nursery")
    environment = {**worker_environment("train", {"engine": "torch"}), "PYTHONPATH": str(ROOT)}
    monkeypatch.setattr(nursery, "worker_environment", lambda *_: environment)


def test_the_seconds_to_a_fork_are_told() -> None:
    [row] = rows()
    assert row.value is not None, row.note
    assert 0 < row.value < 60


def test_a_refusal_is_told_as_not_run_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise WorkFailedError(REASON)

    monkeypatch.setattr(forkserver.Forkserver, "bear", refuse)
    [row] = rows()
    assert row.cells()[1] == "not run"
    assert row.note == REASON
