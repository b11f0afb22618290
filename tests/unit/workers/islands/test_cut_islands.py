"""Islands whose model is cut over their ranks do to the bit what whole ones do."""

from pathlib import Path

import numpy as np
import pytest
import zstandard
from safetensors.numpy import save

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.partition.partition import STAGES, Partition
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.islands import cut_vector
from jupiterd.workers.islands.compression import PACKERS, Kind
from jupiterd.workers.islands.flat import FlatLayout
from jupiterd.workers.islands.int8_blocks import BLOCK
from jupiterd.workers.islands.pseudo_gradient_file import (
    PSEUDO_GRADIENT_FILE,
    write_pseudo_gradient,
)
from jupiterd.workers.islands.pseudo_gradient_stream import (
    GrowingPseudoGradient,
    StreamedPseudoGradient,
)
from tests.support.workers.cut.cut_islands import another, rounds
from tests.support.workers.cut.cut_models import Case, shape_of
from tests.support.workers.cut.torch_ranks import on_ranks
from tests.support.workers.unpacked import restored

UNEVEN = (3, 1)
SIZE = 3 * BLOCK + 7


@pytest.mark.net
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["int8", "bf16", "fp32"])
def test_they_send_the_same_bytes_and_end_a_round_with_the_same_weights(kind: Kind, tmp_path: Path):
    size = parameter_count(shape_of(Case()))
    write_pseudo_gradient(tmp_path / "another", PACKERS[kind](another(size)))
    (whole,) = on_ranks(1, rounds, Case(), kind, tmp_path)
    for stage in STAGES:
        cut = Case(partition=Partition(stage, UNEVEN))
        first, second = on_ranks(2, rounds, cut, kind, tmp_path)
        assert [*map(unpacked, first.sent)] == [*map(unpacked, whole.sent)]
        assert not second.sent
        assert first.residual + second.residual == size > first.residual > 2 * second.residual
        for rank in (first, second):
            assert rank.digests == whole.digests
            assert rank.norms == pytest.approx(whole.norms)
            for name, values in whole.weights.items():
                assert np.array_equal(rank.weights[name], values), (stage, name)


def unpacked(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


@pytest.mark.parametrize("kind", ["int8", "bf16", "fp32"])
def test_what_grows_part_by_part_is_the_same_file(kind: Kind, tmp_path: Path):
    numbers = np.random.default_rng(1).normal(size=SIZE).astype(np.float32)
    grown = GrowingPseudoGradient(tmp_path / "scratch", kind, SIZE)
    for start in range(0, SIZE, BLOCK):
        part = slice(start, min(SIZE, start + BLOCK))
        grown.put(part, PACKERS[kind](numbers[part]))
    grown.write(tmp_path / "grown")
    packed = PACKERS[kind](numbers)
    write_pseudo_gradient(tmp_path / "whole", packed)
    found, wanted = (tmp_path / each / PSEUDO_GRADIENT_FILE for each in ("grown", "whole"))
    assert unpacked(found.read_bytes()) == unpacked(wanted.read_bytes()) == save(vars(packed))
    assert not (tmp_path / "scratch").exists()
    streamed = StreamedPseudoGradient(tmp_path / "grown", SIZE)
    assert np.array_equal(restored(streamed, SIZE), restored(packed, SIZE))
    assert streamed.size_bytes == found.stat().st_size


def test_a_damaged_or_foreign_one_is_refused_as_it_is_read(tmp_path: Path):
    numbers = np.ones(SIZE, np.float32)
    write_pseudo_gradient(tmp_path / "way", PACKERS["int8"](numbers))
    file = tmp_path / "way" / PSEUDO_GRADIENT_FILE
    whole = file.read_bytes()
    turned = bytearray(whole)
    turned[len(whole) // 2] ^= 1
    levels, scales = np.zeros(SIZE, np.int8), np.ones(SIZE // BLOCK + 1, np.float32)
    foreign = [
        {"levels": levels, "scales": scales * np.inf},
        {"numbers": np.full(SIZE, np.nan, np.float32)},
        {"halves": np.full(SIZE, 0xFF80, np.uint16)},
        {"levels": levels},
        {},
    ]
    wrong = [whole[:-5], whole[: len(whole) // 2], b"", b"rubbish", bytes(turned)]
    wrong += [zstandard.compress(save(arrays)) for arrays in foreign]
    wrong += [zstandard.compress(unpacked(whole) + b"more"), zstandard.compress(bytes(1 << 20))]
    for damaged in wrong:
        file.write_bytes(damaged)
        with pytest.raises(CorruptArtifactError):
            restored(StreamedPseudoGradient(tmp_path / "way", SIZE), SIZE)
    file.write_bytes(whole)
    with pytest.raises(CorruptArtifactError, match="doesn't fit a model of"):
        restored(StreamedPseudoGradient(tmp_path / "way", SIZE - 1), SIZE - 1)
    file.unlink()
    with pytest.raises(CorruptArtifactError):
        restored(StreamedPseudoGradient(tmp_path / "way", SIZE), SIZE)


def test_parts_have_whole_blocks():
    assert cut_vector.PART % BLOCK == 0
    assert FlatLayout.of_shapes({"b": (2, 3), "a": (4,)}).starts == {"a": 0, "b": 4}
