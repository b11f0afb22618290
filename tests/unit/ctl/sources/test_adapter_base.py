"""What an exported adapter says of its base, and the hash by which that base is told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from jupiterd.ctl.sources.adapter_base import (
    RecordedBase,
    is_other_base,
    recorded_base,
    weights_hash,
)
from jupiterd.errors import BrokenModelError

FIRST = np.arange(6, dtype=np.float32).reshape(2, 3)
SECOND = np.ones(4, np.float16)


def written(folder: Path, *files: dict[str, NDArray[Any]], twice: bool = False) -> Path:
    folder.mkdir()
    for number, tensors in enumerate(files):
        name = "model.safetensors" if len(files) == 1 else f"model-{number}.safetensors"
        save_file(tensors, folder / name, metadata={"format": "pt"} if twice else None)
    if twice:
        save_file(files[0], folder / "consolidated.safetensors")
    return folder


def test_the_hash_is_that_of_the_tensors_however_many_files_hold_them(tmp_path: Path) -> None:
    one = weights_hash(written(tmp_path / "one", {"a": FIRST, "b": SECOND}))
    assert weights_hash(written(tmp_path / "two", {"b": SECOND}, {"a": FIRST})) == one
    assert weights_hash(written(tmp_path / "three", {"a": FIRST, "b": SECOND}, twice=True)) == one


@pytest.mark.parametrize(
    "other",
    [
        {"a": FIRST, "c": SECOND},
        {"a": FIRST + np.float32(1e-6), "b": SECOND},
        {"a": FIRST.reshape(3, 2), "b": SECOND},
        {"a": FIRST, "b": SECOND.view(np.uint16)},
        {"a": FIRST},
    ],
    ids=["name", "number", "shape", "type", "fewer"],
)
def test_whatever_differs_is_another_base(tmp_path: Path, other: dict[str, Any]) -> None:
    one = weights_hash(written(tmp_path / "one", {"a": FIRST, "b": SECOND}))
    assert weights_hash(written(tmp_path / "other", other)) != one


def test_weights_that_are_cut_off_are_named(tmp_path: Path) -> None:
    file = written(tmp_path / "one", {"a": FIRST}) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(BrokenModelError, match="weights in one can't be read"):
        weights_hash(file.parent)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"base": 3}', '{"base": {"id": "short", "weights": ["x"]}}', "[" * 9999],
)
def test_a_stranger_s_record_says_nothing_and_refuses_nothing(tmp_path: Path, text: str) -> None:
    base = written(tmp_path / "base", {"a": FIRST})
    (tmp_path / "jupiter.json").write_text(text)
    assert recorded_base(tmp_path) == RecordedBase()
    assert not is_other_base(tmp_path, base)


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    base = written(tmp_path / "base", {"a": FIRST})
    said = RecordedBase("mine", "d" * 64, weights_hash(base))
    (tmp_path / "jupiter.json").write_text(json.dumps({"base": said.to_plain()}))
    assert recorded_base(tmp_path) == said
    assert not is_other_base(tmp_path, base)
    assert is_other_base(tmp_path, written(tmp_path / "other", {"a": FIRST * 2}))
