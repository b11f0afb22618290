"""Ranks of a model that is cut over them make as many passes each, and count each sequence once."""

from pathlib import Path

import numpy as np
import pytest

from jupiterd.workers.tokens.shards import ShardSet
from jupiterd.workers.train.batches import RankBatches, cut
from jupiterd.workers.training_engine import MicroBatch
from tests.support.workers.tiny_engine import tiny_engine
from tests.support.workers.tiny_run import make_inputs

BATCH = 9


@pytest.fixture
def shards(tmp_path: Path) -> ShardSet:
    return ShardSet(Path(make_inputs(tmp_path)["shards"]))


def passes(shards: ShardSet, shares: tuple[int, ...], sizes: tuple[int, ...]) -> list[list]:
    ranks = [
        RankBatches(shards, "s", BATCH, size, rank, len(sizes), together=sizes)
        for rank, size in enumerate(sizes)
    ]
    return [list(rank.at(0, shares)) for rank in ranks]


@pytest.mark.parametrize(
    ("shares", "sizes", "count"),
    [((3, 3, 3), (3, 3, 3), 1), ((7, 1, 1), (2, 2, 2), 4), ((4, 4, 1), (4, 1, 1), 4)],
)
def test_all_make_as_many_and_none_holds_more_than_it_may(
    shards: ShardSet, shares: tuple[int, ...], sizes: tuple[int, ...], count: int
) -> None:
    made = passes(shards, shares, sizes)
    assert [len(batches) for batches in made] == [count] * len(sizes)
    for batches, size in zip(made, sizes, strict=True):
        assert max(len(batch.inputs) for batch in batches) <= size


def test_each_sequence_counts_once(shards: ShardSet) -> None:
    (whole,) = RankBatches(shards, "s", BATCH, BATCH).at(0)
    made = passes(shards, (7, 1, 1), (2, 2, 2))
    counting = [b.inputs for batches in made for b in batches if b.counted is None]
    assert np.array_equal(np.concatenate(counting), whole.inputs)


def test_a_pass_without_sequences_adds_nothing_to_the_loss(shards: ShardSet) -> None:
    (whole,) = RankBatches(shards, "s", BATCH, BATCH).at(0)
    empty = cut(whole, slice(4, 4))
    engine = tiny_engine()
    assert len(empty.inputs) == 1
    assert engine.nats([empty]) == 0.0
    assert engine.nats([whole, empty]) == pytest.approx(engine.nats([whole]))


def test_where_answers_alone_count_they_count_as_often_in_parts() -> None:
    tokens = np.arange(40).reshape(4, 10)
    counted = tokens % 3 == 0
    batch = MicroBatch(tokens, tokens + 1, None, counted, int(counted.sum()))
    parts = [cut(batch, part) for part in (slice(0, 3), slice(3, 3), slice(3, 4))]
    assert sum(int(part.counted.sum()) for part in parts if part.counted is not None) == (
        counted.sum()
    )
    assert {part.counted_in_step for part in parts} == {batch.counted_in_step}
