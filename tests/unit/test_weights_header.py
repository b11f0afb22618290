"""The totals of a folder's weights, and what is said of a folder that has none."""

from pathlib import Path

import pytest

from jupiterd.errors import BrokenModelError
from jupiterd.weights_header import read_weights


def test_a_folder_of_ones_own_without_weights_is_called_by_its_whole_name(tmp_path: Path):
    folder = tmp_path / "my-own-little-model"
    folder.mkdir()
    with pytest.raises(BrokenModelError, match=r"^my-own-little-model has no weights") as caught:
        read_weights(folder)
    assert "a model's folder has config.json" in caught.value.hint


def test_an_artifact_without_weights_is_called_by_its_first_digits(tmp_path: Path):
    folder = tmp_path / ("ab" * 32)
    folder.mkdir()
    with pytest.raises(BrokenModelError, match=r"^abababab has no weights"):
        read_weights(folder)


def test_a_file_of_weights_that_is_cut_off_is_named(tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"\x10")
    with pytest.raises(BrokenModelError, match="can't be read") as caught:
        read_weights(tmp_path)
    assert "fetch it again" in caught.value.hint
    assert "another node" not in caught.value.hint
