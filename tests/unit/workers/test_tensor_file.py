"""Weights of a folder that are read one after the other."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.tensor_file import StoredTensors, load_tensors

MIB = 1 << 20


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_each_is_what_the_whole_file_holds(tmp_path: Path, kind: torch.dtype) -> None:
    drawn = {"a": torch.randn(3, 5).to(kind), "b.c": torch.randn(7).to(kind)}
    save_file(drawn, tmp_path / "model.safetensors")
    stored = StoredTensors(tmp_path)
    assert {name: stored.shape(name) for name in stored} == {"a": (3, 5), "b.c": (7,)}
    for name, values in load_tensors(tmp_path / "model.safetensors").items():
        assert stored[name].dtype == np.float32
        assert np.array_equal(stored[name], values)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_no_more_than_one_is_there_at_a_time(tmp_path: Path, kind: torch.dtype) -> None:
    drawn = {str(n): torch.ones(MIB // 4, dtype=kind) for n in range(16)}
    save_file(drawn, tmp_path / "model.safetensors")
    tracemalloc.start()
    try:
        stored = StoredTensors(tmp_path)
        assert sum(float(stored[name].sum()) for name in stored) == 16 * MIB // 4
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 6 * MIB


@pytest.mark.parametrize("left", [0, 4, 40, -1])
def test_a_file_that_is_cut_off_is_told(tmp_path: Path, left: int) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(64)}, file)
    file.write_bytes(file.read_bytes()[:left])
    with pytest.raises(CorruptArtifactError):
        _ = StoredTensors(tmp_path)["a"]


def test_a_folder_without_weights_is_told(tmp_path: Path) -> None:
    with pytest.raises(CorruptArtifactError):
        StoredTensors(tmp_path)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_stretch_of_a_tensor_is_what_the_whole_has_there(
    tmp_path: Path, kind: torch.dtype
) -> None:
    drawn = {"a": torch.randn(3).to(kind), "b": torch.randn(5, 7).to(kind)}
    save_file(drawn, tmp_path / "model.safetensors")
    stored = StoredTensors(tmp_path)
    for start, end in ((0, 35), (3, 20), (34, 35), (9, 9)):
        found = stored.stretch("b", start, end)
        assert found.dtype == np.float32
        assert np.array_equal(found, stored["b"].ravel()[start:end])
