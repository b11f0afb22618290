"""Parts of a checkpoint, put together, are the checkpoint that a single rank would write."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jupiterd.cycle.training.partition.partition_layout import units_of
from jupiterd.cycle.training.plan import derive
from jupiterd.daemon.artifacts.checkpoint_assembly import assemble
from jupiterd.errors import CorruptArtifactError
from jupiterd.protocol.checkpoint_part import DATA_FILE, DESCRIPTION_FILE
from jupiterd.workers import tensor_writer
from jupiterd.workers.tensor_file import load_tensors
from jupiterd.workers.train.checkpoints import checkpoint
from jupiterd.workers.train.checkpoints.checkpoint import TrainingState
from jupiterd.workers.train.checkpoints.part_writer import PartWriter
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from jupiterd.workers.training_engine import MicroBatch, TensorPiece
from tests.support.workers.tiny_run import make_inputs, tiny_shape

STATE = TrainingState(
    round=2, step=3, tokens=100, cursor=18, plan_hash="p", model_hash="m", rng="00"
)
NORM = "model.norm.weight"


class RankOf(TorchEngine):
    """Holds all, and gives out what a rank would hold."""

    parts: Sequence[int] = (1,)

    def own_pieces(self) -> Iterator[TensorPiece]:
        whole = {name: values.ravel() for name, values in {**self.weights()}.items()}
        moments = {name: values.ravel() for name, values in self.moments().items()}
        for unit in units_of(self.shapes):
            start, end = [*pairwise(unit.bounds(self.parts))][self.rank]
            for piece in unit.pieces(start, end):
                taken = slice(piece.start, piece.end)
                yield TensorPiece(piece.name, piece.start, whole[piece.name][taken])
                for kind in ("exp_avg", "exp_avg_sq"):
                    name = f"{kind}.{piece.name}"
                    yield TensorPiece(name, piece.start, moments[name][taken])


@pytest.fixture(scope="module")
def engine() -> RankOf:
    shape = tiny_shape()
    found = RankOf(shape, derive(shape, 1), 0, ProcessGroup(0, 1), "cpu")
    found.begin(has_same_weights=True)
    tokens = np.arange(34).reshape(2, 17)
    found.step([MicroBatch(tokens[:, :-1], tokens[:, 1:])], 1e-3)
    return found


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(make_inputs(tmp_path_factory.mktemp("inputs"))["tokenizer"])


def written(
    engine: RankOf,
    tokenizer: Path,
    folder: Path,
    parts: Sequence[int],
    best: Path | None = None,
    *,
    takes_over: bool = False,
) -> list[Path]:
    engine.parts, found = parts, []
    for rank in range(len(parts)):
        engine.rank = rank
        found.append(folder / f"part-{rank}")
        held = None if rank else best  # one process of each machine has the file
        PartWriter(engine, tokenizer).write(STATE, found[-1], held, takes_over=takes_over)
    engine.rank = 0
    return found


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@settings(max_examples=12, deadline=None, suppress_health_check=[*HealthCheck])
@given(parts=st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any))
def test_together_they_are_what_one_rank_writes_to_the_last_byte(
    engine: RankOf, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory, parts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    checkpoint.write(checkpoint.snapshot(engine, STATE), folder / "alone", tokenizer)
    assemble(written(engine, tokenizer, folder, parts), folder / "together")
    assert contents(folder / "together") == contents(folder / "alone")


def test_better_weights_stand_beside_a_step_and_take_its_place_at_the_end(
    engine: RankOf, tokenizer: Path, tmp_path: Path
) -> None:
    best = tmp_path / "best.safetensors"
    better = ((name, values + 1) for name, values in engine.each_weight())
    tensor_writer.save_each(better, engine.shapes, best)
    for name, takes_over in (("between", False), ("last", True)):
        (tmp_path / name).mkdir()
        parts = written(engine, tokenizer, tmp_path / name, (2, 1), best, takes_over=takes_over)
        assemble(parts, tmp_path / name / "all")
    beside = tmp_path / "between" / "all" / "training_state" / "best.safetensors"
    assert beside.read_bytes() == best.read_bytes()
    between, last = (
        load_tensors(tmp_path / name / "all" / "model.safetensors")[NORM]
        for name in ("between", "last")
    )
    np.testing.assert_allclose(last, between + 1)
    assert not (tmp_path / "last" / "all" / "training_state" / "best.safetensors").exists()


def test_parts_that_lack_one_make_no_checkpoint(
    engine: RankOf, tokenizer: Path, tmp_path: Path
) -> None:
    parts = written(engine, tokenizer, tmp_path, (1, 1, 1))
    with pytest.raises(CorruptArtifactError, match="lacks bytes at"):
        assemble([parts[0], parts[2]], tmp_path / "all")
    with pytest.raises(CorruptArtifactError, match="is there twice at"):
        assemble([*parts, parts[1]], tmp_path / "all")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "can't be read"),
        ('{"extents": [["../../etc/passwd", 0, 4]]}', "names"),
        ('{"extents": [["/etc/passwd", 0, 4]]}', "names"),
        ('{"extents": [["a", -8, 4]]}', "names a"),
        ('{"extents": [["a", 5, -3]]}', "names a"),
        ('{"extents": [["", 0, 4]]}', "names"),
        ('{"extents": [["a", Infinity, 4]]}', "can't be read"),
    ],
)
def test_a_part_that_says_what_it_may_not_writes_nothing(
    text: str, message: str, tmp_path: Path
) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / DESCRIPTION_FILE).write_text(text)
    (part / DATA_FILE).write_bytes(b"data")
    with pytest.raises(CorruptArtifactError, match=message):
        assemble([part], tmp_path / "all")
    assert not (tmp_path / "all").exists()


def test_a_part_that_is_shorter_than_it_says_makes_no_checkpoint(tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / DESCRIPTION_FILE).write_text('{"extents": [["a", 0, 400]]}')
    (part / DATA_FILE).write_bytes(b"data")
    with pytest.raises(CorruptArtifactError, match="shorter"):
        assemble([part], tmp_path / "all")


def test_parts_without_bytes_are_no_equal_artifacts(
    engine: RankOf, tokenizer: Path, tmp_path: Path
) -> None:
    texts = {
        (part / DESCRIPTION_FILE).read_text()
        for part in written(engine, tokenizer, tmp_path, (1, 0, 0))
    }
    assert len(texts) == 3
