"""Islands of unlike engines, and of several ranks, in processes of their own."""

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig

from jupiterd.cycle.training.model_fingerprint import strangers
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, shape_of_config
from jupiterd.protocol.frames import (
    Progressed,
    PseudoGradientWritten,
    SaveState,
    StateSaved,
    TaskFailed,
    TaskFinished,
)
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches
from tests.support.workers.gangs import Gangs, meeting_of
from tests.support.workers.island_threads import Island
from tests.support.workers.outer_leader import OuterLeader, Rank, digests
from tests.support.workers.tiny_engine import tiny_engine
from tests.support.workers.tiny_run import SEQ_LEN, make_inputs, tiny_shape

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

TOLERANCE = 1e-4
BATCH = 4


def plan(steps: int) -> TrainPlan:
    changes = {"steps": steps, "batch_sequences": BATCH, "learning_rate": 1e-3}
    return derive(tiny_shape(), 1, changes).model_copy(update={"checkpoint_every_steps": 1000})


class Processes:
    """Islands in processes; each rank's log is in its own folder."""

    def __init__(
        self, gangs: Gangs, leader: OuterLeader, folder: Path, weights: Path | None = None
    ) -> None:
        """weights: to begin with, or that an adapter is trained beside."""
        self._gangs, self._leader, self._folder = gangs, leader, folder
        self._inputs = make_inputs(folder, leader.shape.vocab_size)
        if weights is not None:
            self._inputs["weights"] = str(weights)
        self._threads: list[threading.Thread] = []

    def begin(
        self,
        island: str,
        engine: str,
        ranks: int = 1,
        checkpoint: Path | None = None,
        **params: Any,
    ) -> None:
        """Start the ranks of an island; checkpoint: that they go on from."""
        meeting = meeting_of(engine, ranks, "") | params
        inputs = self._inputs | ({} if checkpoint is None else {"checkpoint": str(checkpoint)})
        addresses = [self._folder / f"{island}{rank}" / "link" for rank in range(ranks)]
        for rank, address in enumerate(addresses):
            address.parent.mkdir()
            self._leader.listen(island, inputs, address, rank=rank, **meeting)
        serve = self._gangs.serve
        thread = threading.Thread(target=serve, args=(engine, addresses), daemon=True)
        thread.start()
        self._threads.append(thread)

    def ended(self) -> None:
        """Return once all have come to their end, none of them by a mistake."""
        for thread in self._threads:
            thread.join(100)
            assert not thread.is_alive()
        for rank in self._leader.ranks:
            self._leader.wait_for_end(rank)
            assert rank.said(TaskFinished), rank.said(TaskFailed)

    def digests(self, island: str, rank: int = 0) -> dict[int, str]:
        return digests((self._folder / f"{island}{rank}" / "log").read_text(), island)


def losses(ranks: Sequence[Rank], island: str) -> list[float]:
    return readings(ranks, island, "loss")


def rates(ranks: Sequence[Rank], island: str) -> list[float]:
    return readings(ranks, island, "lr")


def readings(ranks: Sequence[Rank], island: str, name: str) -> list[float]:
    told = [frame for rank in ranks if rank.island == island for frame in rank.said(Progressed)]
    return [frame.values[name] for frame in told if "waiting" not in frame.values]


def alone(inputs: dict[str, str], plan: TrainPlan) -> list[float]:
    """Train on the same batches in this process; return the losses."""
    engine, schedule = tiny_engine(plan), plan.schedule()
    batches = RankBatches(ShardSet(Path(inputs["shards"])), f"{plan.seed}/round 1", BATCH, 2)
    return [
        engine.step(list(batches.at(step * BATCH)), schedule.learning_rate(step))[0]
        for step in range(plan.steps)
    ]


@pytest.mark.mlx
def test_an_mlx_and_a_torch_island_that_meet_every_step_train_as_one_process_does(
    gangs: Gangs, tmp_path: Path
):
    pytest.importorskip("mlx.core")
    rounds = plan(50)
    both = {"m": BATCH, "t": BATCH}
    leader = OuterLeader(
        tmp_path, rounds, both, 1, OuterSettings(1.0, 0.0), kind="fp32", same_batches=True
    )
    processes = Processes(gangs, leader, tmp_path)
    processes.begin("m", "mlx")
    processes.begin("t", "torch")
    processes.ended()
    assert processes.digests("m") == processes.digests("t")
    assert len(processes.digests("m")) == 51
    one, other = (rank.said(PseudoGradientWritten) for rank in leader.ranks)
    for each, beside in zip(one, other, strict=True):
        assert not strangers(
            {"a": each.pseudo_gradient.logits, "b": beside.pseudo_gradient.logits}, {"a"}
        )
        assert each.pseudo_gradient.digest == beside.pseudo_gradient.digest != b""
    assert not leader.adrift
    ours = alone(make_inputs(tmp_path / "again"), rounds)
    for island in both:
        theirs = losses(leader.ranks, island)
        assert len(theirs) == 50
        assert max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) < TOLERANCE
    assert ours[-1] < ours[0] - 0.3, "and it learns something"


@pytest.mark.full
@pytest.mark.mlx
def test_islands_of_both_engines_are_one_with_the_vocabulary_of_qwen3(gangs: Gangs, tmp_path: Path):
    pytest.importorskip("mlx.core")
    leader = OuterLeader(
        tmp_path, plan(8), {"m": BATCH, "t": BATCH}, 2, kind="fp32", same_batches=True
    )
    leader.shape = tiny_shape(vocab_size=151_936, hidden=16)
    processes = Processes(gangs, leader, tmp_path)
    processes.begin("m", "mlx")
    processes.begin("t", "torch")
    processes.ended()
    assert processes.digests("m") == processes.digests("t")
    assert len(processes.digests("m")) == 5
    one, other = (losses(leader.ranks, name) for name in ("m", "t"))
    assert len(one) == 8
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < TOLERANCE


def shape_with(kind: str, vocab_size: int) -> ModelShape:
    """Return a tiny model of others with the vocabulary of a public one."""
    config = AutoConfig.for_model(
        kind, vocab_size=vocab_size, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, max_position_embeddings=64,
        tie_word_embeddings=kind == "qwen3",
    )  # fmt: skip
    shape = shape_of_config(kind, config.to_dict(), tiny_shape().recipe)
    return shape.model_copy(update={"seq_len": SEQ_LEN})


def assert_alike_after_each_outer_step(processes: Processes, outer_steps: int) -> None:
    """Train an island of each engine, to equal weights before the first step and after each."""
    processes.begin("m", "mlx")
    processes.begin("t", "torch")
    processes.ended()
    assert processes.digests("m") == processes.digests("t")
    assert len(processes.digests("m")) == outer_steps + 1


@pytest.mark.mlx
@pytest.mark.parametrize(
    ("kind", "vocab_size"),
    [pytest.param("llama", 128_256, marks=pytest.mark.full), ("qwen3", 151_936)],
)
def test_islands_of_both_engines_have_equal_weights_after_each_outer_step_of_a_large_vocabulary(
    gangs: Gangs, tmp_path: Path, kind: str, vocab_size: int
):
    pytest.importorskip("mlx.core")
    rounds, every = plan(12), 4
    both = {"m": BATCH, "t": BATCH}
    leader = OuterLeader(tmp_path, rounds, both, every, kind="fp32")
    leader.shape = shape_with(kind, vocab_size)
    assert_alike_after_each_outer_step(Processes(gangs, leader, tmp_path), rounds.steps // every)
    one, other = (losses(leader.ranks, name) for name in both)
    assert one != other, "each learns from text of its own"
    assert min(one[0], other[0]) > math.log(vocab_size) - 1
    assert not leader.adrift


@pytest.mark.full
@pytest.mark.mlx
def test_islands_of_both_engines_that_join_with_nothing_learned_raise_their_rates_alike(
    gangs: Gangs, tmp_path: Path
):
    pytest.importorskip("mlx.core")
    rounds, every = plan(40), 8
    three = dict.fromkeys(("x", "m", "t"), BATCH)
    leader = OuterLeader(tmp_path, rounds, three, every, kind="fp32", same_batches=True)
    processes = Processes(gangs, leader, tmp_path)
    before = Island(leader, "x", make_inputs(tmp_path / "x"))
    leader.wait_for(before.rank, PseudoGradientWritten)
    leader.close_round()
    processes.begin("m", "mlx")
    processes.begin("t", "torch")
    before.ended()
    processes.ended()
    assert processes.digests("m") == processes.digests("t")
    one, other = (losses(leader.ranks, name) for name in ("m", "t"))
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < TOLERANCE
    assert rates(leader.ranks, "m") == rates(leader.ranks, "t")
    usual = [rounds.schedule().learning_rate(step) for step in range(every, rounds.steps)]
    parts = [a / b for a, b in zip(rates(leader.ranks, "m"), usual, strict=True)]
    raised = [(n + 1) / every for n in range(every)]
    assert parts == pytest.approx([*raised, *[1.0] * (len(usual) - every)])


def test_the_ranks_of_an_island_stay_in_step_and_stop_together_while_they_wait(
    gangs: Gangs, tmp_path: Path
):
    leader = OuterLeader(tmp_path, plan(16), {"one": 2, "two": 4}, 4)
    leader.expected = {"two"}
    processes = Processes(gangs, leader, tmp_path)
    processes.begin("two", "torch", ranks=2)
    leader.wait_for_line(3)
    leader.expected = {"one", "two"}
    first, second = sorted(leader.ranks, key=lambda rank: -len(rank.said(PseudoGradientWritten)))
    leader.wait_for(first, PseudoGradientWritten, 3)
    for rank in leader.ranks:
        rank.tell(SaveState(0))
        leader.wait_for(rank, StateSaved)
    leader.stop(second)
    processes.ended()
    assert not second.said(PseudoGradientWritten), "one of them sends it"
    assert processes.digests("two", 0) == processes.digests("two", 1)
    assert len(processes.digests("two")) == 3
    assert any("waiting" in frame.values for frame in first.said(Progressed))
    for name in ("kept-00000012", "checkpoint-00000012"):
        one, other = (content(rank.folder / name) for rank in (first, second))
        assert one == other, "whoever survives holds what any other has"
        assert "training_state/outer.safetensors" in one
    assert "Sync=OK" in (tmp_path / "two0" / "log").read_text()


def content(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
