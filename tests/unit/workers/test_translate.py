"""What a worker's exceptions become."""

import pytest
import torch

from jupiterd.errors import NotFoundError, OutOfMemoryError, WorkFailedError
from jupiterd.workers.__main__ import module_of, translate


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("[malloc_or_wait] Unable to allocate 123 bytes."),
        RuntimeError("[metal::malloc] Attempting to allocate 1 bytes which is greater than"),
    ],
)
def test_memory_that_runs_out_has_an_error_of_its_own(error: Exception) -> None:
    assert isinstance(translate(error, "train"), OutOfMemoryError)


def test_a_real_allocation_that_cannot_be_had_is_known() -> None:
    with pytest.raises((RuntimeError, MemoryError)) as failed:
        torch.empty(1 << 50)
    assert isinstance(translate(failed.value, "train"), OutOfMemoryError)


def test_another_failure_stays_one() -> None:
    assert type(translate(RuntimeError("shapes differ"), "train")) is WorkFailedError


def test_a_task_of_another_version_is_no_failure_that_counts():
    with pytest.raises(NotFoundError, match="knows no task store") as caught:
        module_of("store")
    assert caught.value.may_mend
    assert not caught.value.is_permanent
