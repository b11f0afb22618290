"""What is found of damaged weights before anything loads them."""

import json
from pathlib import Path

import pytest

from jupiterd.cycle.base.model_files import INDEX
from jupiterd.weight_files import damage

NAMES = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def write_weights(path: Path, missing: int = 0) -> None:
    """Write one tensor of 64 bytes, of which some may be missing."""
    tensor = {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}
    header = json.dumps({"weight": tensor}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64 - missing))


def write_shards(folder: Path) -> None:
    """Write two files of weights, and their index."""
    for name in NAMES:
        write_weights(folder / name)
    index = {"weight_map": {"one": NAMES[0], "two": NAMES[1]}}
    (folder / INDEX).write_text(json.dumps(index))


def test_whole_weights_have_no_damage(tmp_path: Path):
    write_shards(tmp_path)
    assert damage(tmp_path) == ""


def test_a_cut_file_is_named_with_what_is_missing(tmp_path: Path):
    write_weights(tmp_path / "model.safetensors", missing=24)
    assert damage(tmp_path) == "model.safetensors is cut off: 24 bytes are missing"


def test_a_missing_shard_is_named(tmp_path: Path):
    write_shards(tmp_path)
    (tmp_path / NAMES[1]).unlink()
    assert damage(tmp_path) == f"{NAMES[1]} is missing, which {INDEX} names"


def test_a_folder_without_weights_is_no_whole_model(tmp_path: Path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    assert damage(tmp_path).startswith("model.safetensors isn't there")


@pytest.mark.parametrize("index", ["", "{", "[]", '{"weight_map": 3}'])
def test_an_index_that_says_nothing_is_damage(tmp_path: Path, index: str):
    write_weights(tmp_path / "model.safetensors")
    (tmp_path / INDEX).write_text(index)
    assert damage(tmp_path) == f"{INDEX} can't be read"


@pytest.mark.parametrize("content", [b"", b"nothing", b"\xff" * 100, bytes(100)])
def test_what_is_no_safetensors_is_damage(tmp_path: Path, content: bytes):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert damage(tmp_path).startswith("model.safetensors is cut off, or no safetensors")
