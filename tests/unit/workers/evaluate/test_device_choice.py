"""Where a model is asked that nobody waits for."""

import pytest
import torch

from jupiterd.errors import UsageError
from jupiterd.workers.evaluate.device_choice import AUTO, CPU, CUDA, chosen_device


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.parametrize("wanted", [AUTO, CPU])
def test_without_a_gpu_the_cpu_computes(wanted: str):
    assert chosen_device(wanted) == CPU


def test_a_gpu_that_is_asked_for_and_not_there_is_refused():
    with pytest.raises(UsageError, match="no device cuda here"):
        chosen_device(CUDA)
