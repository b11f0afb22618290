"""NCCL that can't be had is an error with a code, in good time."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch

from jupiterd.errors import NcclFailedError, from_wire
from jupiterd.workers.train.torch import nccl
from jupiterd.workers.train.torch.nccl import meet_over_nccl

needs_no_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="NCCL works here")


def meeting(store: Any) -> dict[str, Any]:
    return {"store": store, "rank": 0, "world_size": 1}


@needs_no_gpu
def test_a_torch_without_nccl_says_so(tmp_path: Path):
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    with pytest.raises(NcclFailedError, match="rank 0 has no NCCL: ") as failed:
        meet_over_nccl(meeting(store), "cuda:0", lambda _: None)
    assert "\n" not in failed.value.message
    again = from_wire(failed.value.code, failed.value.message, failed.value.hint)
    assert isinstance(again, NcclFailedError)


TWO_RANKS_ON_ONE_GPU = """\
NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.cpp:77, invalid usage (run with \
NCCL_DEBUG=WARN for details), NCCL version 2.27.5
ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
Last error:
Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000
"""


def test_two_ranks_on_one_gpu_fail_with_nccls_own_reason(monkeypatch: pytest.MonkeyPatch):
    def refuse(_device: str) -> float:
        raise torch.distributed.DistBackendError(TWO_RANKS_ON_ONE_GPU)

    pretend(monkeypatch, refuse)
    with pytest.raises(NcclFailedError) as failed:
        meet_over_nccl(alone(), "cuda:0", lambda _: pytest.fail("gave up"))
    assert failed.value.message == (
        "rank 0 has no NCCL: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000"
    )


def pretend(monkeypatch: pytest.MonkeyPatch, first_sum: Any) -> None:
    monkeypatch.setattr(torch.distributed, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(nccl, "_first_sum", first_sum)


def alone() -> dict[str, Any]:
    return meeting(torch.distributed.HashStore())


def test_a_first_sum_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch):
    is_over, errors = threading.Event(), list[NcclFailedError]()

    def hang(_device: str) -> float:
        assert is_over.wait(10.0), "nobody gave up"
        return 1.0

    def give_up(error: NcclFailedError) -> None:
        errors.append(error)
        is_over.set()

    pretend(monkeypatch, hang)
    meet_over_nccl(alone(), "cuda:0", give_up, timeout_s=0.05)
    (error,) = errors
    assert error.message == "rank 0 couldn't sum over NCCL within 0.05 s"


def test_a_rank_that_comes_late_is_no_failure_of_nccl(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, lambda _: 2.0)
    store = torch.distributed.HashStore()
    store.set_timeout(timedelta(seconds=20))
    both = {"store": store, "rank": 0, "world_size": 2}
    late = threading.Timer(0.3, store.set, ["here/1", ""])
    late.start()
    meet_over_nccl(both, "cuda:0", lambda _: pytest.fail("gave up"), timeout_s=0.2)
    late.join()


def test_a_wrong_sum_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, lambda _: 0.0)
    with pytest.raises(NcclFailedError, match="summed 1 ones over NCCL, and got 0"):
        meet_over_nccl(alone(), "cuda:0", lambda _: None)


def test_a_first_sum_in_time_leaves_no_timer_behind(monkeypatch: pytest.MonkeyPatch):
    pretend(monkeypatch, lambda _: 1.0)
    meet_over_nccl(alone(), "cuda:0", lambda _: pytest.fail("gave up"), timeout_s=60.0)
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    assert all(timer.finished.is_set() for timer in timers)
