"""A measurement of what islands learn goes on where it was broken off, and forgets no settings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jupiterd.workers.tokens.shards import ShardSet, ShardWriter
from jupiterd.workers.training_engine import MicroBatch
from tests.bench.islands.contestants import Race, Result
from tests.bench.islands.kept import KeptResults
from tests.bench.islands.losses import ALONE, TOGETHER, contestants, print_losses, print_table
from tests.bench.islands.text import Text
from tests.bench.train.single import preset

NOBODY = ("nobody",)


@pytest.fixture
def race(tmp_path: Path) -> Race:
    """Return one of two steps of a model of a few hundred weights."""
    few = {"hidden": 16, "layers": 1, "ff": 16, "heads": 1, "kv_heads": 1, "head_dim": 16}
    shape = preset("1m").model_copy(update={**few, "vocab_size": 257, "seq_len": 16})
    tokens = np.random.default_rng(7).integers(0, shape.vocab_size, 16 * 32 + 1)
    writer = ShardWriter(tmp_path / "shards", 257)
    writer.append(tokens.tolist())
    writer.finish(seq_len=16, tokenizer_hash="", documents=1, size_bytes=1)
    held_out = [MicroBatch(tokens[None, :16], tokens[None, 1:17])]
    return Race(shape, Text(ShardSet(tmp_path / "shards"), held_out, 1.0), 2, 1, 1)


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_measured_in_pieces_it_tells_of_all(
    race: Race, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = KeptResults(tmp_path / "kept")
    print_losses([race], 1, kept, (ALONE,))
    first = told(capsys)
    assert len(first) == 1, "with one contestant, nothing is compared"
    print_losses([race], 1, kept, (TOGETHER,))
    both = told(capsys)
    assert both[0] == first[0]
    assert [line.split(":")[1].strip() for line in both[2:]] == [ALONE, TOGETHER]
    print_losses([race], 1, kept, NOBODY)
    assert told(capsys) == both


def test_what_other_settings_came_to_is_not_taken_for_it(
    race: Race, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = KeptResults(tmp_path / "kept")
    print_losses([race], 1, kept, (ALONE,))
    assert told(capsys)
    others = [replace(race, **{name: 3}) for name in ("steps", "batch_sequences", "seed")]
    other_text = replace(race.text, bytes_per_token=2.0)
    others += [replace(race, learning_rate=1e-3), replace(race, text=other_text)]
    print_losses(others, 1, kept, NOBODY)
    assert told(capsys) == []


def test_exchanges_that_differ_are_other_settings(race: Race) -> None:
    each_step, each_other_step = (contestants(every)[2].settings(race) for every in (1, 2))
    assert each_step != each_other_step


def test_without_a_folder_nothing_is_found_again() -> None:
    kept = KeptResults()
    kept.keep("islands", {}, Result(1.0, 0, 0, 0))
    assert kept.found("islands", {}) is None


def test_each_is_compared_over_the_seeds_it_has_run_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    everybody = contestants(50)
    overlapping, average = everybody[2].name, everybody[3].name
    first = {ALONE: 3.0, TOGETHER: 2.0, overlapping: 2.01, average: 2.5}
    second = {ALONE: 2.0, TOGETHER: 1.0, overlapping: 1.21}
    found = {
        seed: {name: Result(value, 0, 0, 0) for name, value in values.items()}
        for seed, values in ((1, first), (2, second))
    }
    print_table(found, everybody)
    lines = {line.split(": ")[1]: line for line in told(capsys)}
    assert "mean of 2 seeds; keeps 89 % of the gain [reached]" in lines[overlapping]
    assert "ends +7.33 % from together [MISSED]" in lines[overlapping]
    assert "mean of 1 seeds; keeps 50 % of the gain, ends +25.00 %" in lines[average]
