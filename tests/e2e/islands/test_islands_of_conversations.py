"""Two islands tune a model that is talked to: each weighs by the tokens of answers that it saw."""

import json
import random
from pathlib import Path

import pytest

from tests.e2e.cycle.test_chat_cycle import write_chat_model
from tests.e2e.islands.test_islands import assert_equal_weights, outer_steps
from tests.support.daemons.training_runs import two_daemons
from tests.support.strikes.wholeness import left_over

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
]

STEPS, EVERY = 40, 10
ROWS = 400


def write_rows(folder: Path) -> Path:
    """Write sums that are asked for; one answer in three explains itself at length."""
    chance, lines = random.Random(4), list[str]()
    for _ in range(ROWS):
        one, other = chance.randint(1, 99), chance.randint(1, 99)
        plain = f"It is {one + other}."
        answer = plain if chance.random() < 2 / 3 else f"{one} and {other} are added. {plain} " * 3
        said = ({"role": "user", "content": f"What is {one} + {other}?"},
                {"role": "assistant", "content": answer.strip()})  # fmt: skip
        lines.append(json.dumps({"messages": said}))
    (folder / "sums.jsonl").write_text("\n".join(lines))
    return folder / "sums.jsonl"


async def test_islands_have_equal_weights_after_each_step_and_what_is_held_out_gets_better(
    tmp_path: Path,
) -> None:
    rows = write_rows(tmp_path)
    model = write_chat_model(tmp_path / "talker", [rows.read_text()])
    async with two_daemons(tmp_path) as two:
        islands = f"torch:{two.survivor.name} torch:{two.leader.name}"
        ended = await two.train(
            rows,
            *("--model", str(model), "--lr", "2e-3", "--max-steps", str(STEPS)),
            *("--islands", islands, "--sync-every", str(EVERY)),
            *("--batch-size", "2", "--gradient-accumulation-steps", "2"),
        )
        assert ended.returncode == 0, two.cluster.failure_text(ended.stdout + ended.stderr)
        taken = outer_steps(two.survivor)
        shown = json.loads(two.cluster.ctl("train", "status", "-o", "json").stdout)["train"]
    merged = [step for step in taken if len(step.islands) == 2]
    assert len(merged) >= 2
    for step in merged:
        pairs = zip(step.weights, step.tokens, strict=True)
        assert all(0 < counted < seen for counted, seen in pairs)
    assert_equal_weights(two.survivor, two.leader)
    assert shown["best_bits_per_byte"] < shown["bits_per_byte_before"] - 0.5
    assert left_over(tmp_path, []) == []
