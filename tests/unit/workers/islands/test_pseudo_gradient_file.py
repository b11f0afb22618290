"""A way as a folder: the same numbers come out, or nothing does."""

from pathlib import Path

import numpy as np
import pytest
import zstandard
from safetensors.numpy import save

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.islands.compression import PACKERS, Kind
from jupiterd.workers.islands.int8_blocks import BLOCK, blocks_of
from jupiterd.workers.islands.pseudo_gradient_file import (
    PSEUDO_GRADIENT_FILE,
    read_pseudo_gradient,
    write_pseudo_gradient,
)
from tests.support.workers.unpacked import restored

SIZE = 3 * BLOCK + 7


def pseudo_gradient() -> np.ndarray:
    return np.random.default_rng(1).normal(size=SIZE).astype(np.float32)


def folder_of(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    path.mkdir()
    (path / PSEUDO_GRADIENT_FILE).write_bytes(zstandard.compress(save(arrays)))
    return path


@pytest.mark.parametrize("kind", ["int8", "bf16", "fp32"])
def test_what_is_read_is_what_was_packed(kind: Kind, tmp_path: Path):
    packed = PACKERS[kind](pseudo_gradient())
    write_pseudo_gradient(tmp_path / "way", packed)
    found = read_pseudo_gradient(tmp_path / "way", SIZE)
    assert type(found) is type(packed)
    assert np.array_equal(restored(found, SIZE), restored(packed, SIZE))
    assert (tmp_path / "way" / PSEUDO_GRADIENT_FILE).stat().st_size < packed.size_bytes + 300


def test_a_way_that_is_no_number_is_small_and_never_read(tmp_path: Path):
    write_pseudo_gradient(tmp_path / "way", None)
    assert (tmp_path / "way" / PSEUDO_GRADIENT_FILE).stat().st_size < 100
    with pytest.raises(CorruptArtifactError, match=f"doesn't fit a model of {SIZE:,} parameters"):
        read_pseudo_gradient(tmp_path / "way", SIZE)


@pytest.mark.parametrize("kind", ["int8", "bf16", "fp32"])
@pytest.mark.parametrize("size", [SIZE - 1, SIZE + 1, SIZE + BLOCK])
def test_a_way_of_another_model_is_refused(kind: Kind, size: int, tmp_path: Path):
    write_pseudo_gradient(tmp_path / "way", PACKERS[kind](pseudo_gradient()))
    with pytest.raises(CorruptArtifactError):
        read_pseudo_gradient(tmp_path / "way", size)


def test_a_file_that_is_damaged_or_missing_is_refused(tmp_path: Path):
    write_pseudo_gradient(tmp_path / "way", PACKERS["int8"](pseudo_gradient()))
    file = tmp_path / "way" / PSEUDO_GRADIENT_FILE
    whole = file.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 2] ^= 1
    cut = (whole[:-5], whole[: len(whole) // 2], b"", whole[4:])
    for damaged in (*cut, b"rubbish", bytes(turned)):
        file.write_bytes(damaged)
        with pytest.raises(CorruptArtifactError):
            read_pseudo_gradient(tmp_path / "way", SIZE)
    file.unlink()
    with pytest.raises(CorruptArtifactError):
        read_pseudo_gradient(tmp_path / "way", SIZE)


def test_numbers_that_are_none_and_foreign_tensors_are_refused(tmp_path: Path):
    levels, scales = np.zeros(SIZE, np.int8), np.ones(blocks_of(SIZE), np.float32)
    halves = np.zeros(SIZE, np.uint16)
    foreign = {
        "infinite scale": {"levels": levels, "scales": scales * np.inf},
        "infinite half": {"halves": halves + np.uint16(0xFF80)},
        "no number": {"numbers": np.full(SIZE, np.nan, np.float32)},
        "wider": {"numbers": np.zeros(SIZE, np.float64)},
        "folded": {"levels": levels.reshape(1, -1), "scales": scales},
        "one is missing": {"levels": levels},
        "one too many": {"halves": halves, "more": halves[:1]},
    }
    for name, arrays in foreign.items():
        with pytest.raises(CorruptArtifactError):
            read_pseudo_gradient(folder_of(tmp_path / name, arrays), SIZE)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused_before_it_does(tmp_path: Path):
    folder = tmp_path / "way"
    folder.mkdir()
    (folder / PSEUDO_GRADIENT_FILE).write_bytes(zstandard.compress(bytes(1 << 26)))
    with pytest.raises(CorruptArtifactError, match="larger than any pseudo-gradient of this model"):
        read_pseudo_gradient(folder, SIZE)
