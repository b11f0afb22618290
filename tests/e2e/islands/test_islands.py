"""Two islands, one on MLX and one on torch, train one model, through the death of a leader."""

import asyncio
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.cycle_state import CycleState
from tests.support.daemons.cluster import Daemon
from tests.support.daemons.training_runs import Training, TwoDaemons, two_daemons, write_letters
from tests.support.strikes.outer_digests import digests
from tests.support.strikes.wholeness import left_over

pytest.importorskip("mlx.core")

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

STEPS, EVERY = 100, 10


def run_of(daemon: Daemon) -> CycleState | None:
    """The run as a node's ledger has it; its islands are runs of their own."""
    runs = [run for run in daemon.state().cycles.values() if run.training is not None]
    return next((run for run in runs if run.training and not run.training.parent), None)


def outer_steps(daemon: Daemon) -> list[OuterStepTaken]:
    run = run_of(daemon)
    return [] if run is None else [*run.outer_branch().values()]


async def until_step(daemon: Daemon, number: int, timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        while len(outer_steps(daemon)) <= number:  # noqa: ASYNC110 - a ledger file tells nobody
            await asyncio.sleep(0.2)


@pytest.mark.long  # like `test_cycle_of_islands`, with both engines; and `tests/network/test_chaos`
async def test_islands_of_both_engines_outlive_their_leader_with_equal_weights(
    tmp_path: Path,
) -> None:
    letters = write_letters(tmp_path)
    async with two_daemons(tmp_path) as two:
        leader, survivor = two.leader, two.survivor
        follower = train(two, letters)
        await until_step(survivor, 2, 120)
        leader.kill()
        before = len(outer_steps(survivor))
        await until_step(survivor, before, 60)  # alone, under its own lead
        leader.start()
        ended = await follower
        assert ended.returncode == 0, two.cluster.failure_text(ended.stdout + ended.stderr)
        taken = outer_steps(survivor)
    assert_curves(tmp_path / "curves")
    assert_whole(taken)
    assert_equal_weights(survivor, leader)
    assert left_over(tmp_path, []) == []


def train(two: TwoDaemons, letters: Path) -> Training:
    islands = f"torch:{two.survivor.name} mlx:{two.leader.name}"
    return two.train(
        letters,
        *("--max-steps", str(STEPS), "--gradient-accumulation-steps", "2"),
        *("--islands", islands, "--sync-every", str(EVERY)),
        *("--log-dir", str(letters.parent / "curves")),
    )


def assert_curves(link: Path) -> None:
    """What people have asked for leads to those of the island on this machine."""
    assert [path.name for path in link.iterdir()] == ["island-1"]
    assert (link / "island-1" / "metrics.jsonl").read_text().count("loss") > 0


def assert_whole(taken: list[OuterStepTaken]) -> None:
    """Every outer step follows the one before, and what counts was trained on once."""
    assert [step.number for step in taken] == list(range(len(taken)))
    assert (taken[-1].first_step, taken[-1].steps) == (STEPS, 0)
    assert any(len(step.islands) == 2 for step in taken)
    assert any(len(step.islands) == 1 for step in taken), "one was away for at least a round"
    counted = sum(sum(step.tokens) for step in taken)
    assert taken[-1].total_tokens == counted


def assert_equal_weights(*daemons: Daemon) -> None:
    """Wherever both islands took an outer step, they had the same weights, to the bit."""
    one, other = map(digests, daemons)
    both = one.keys() & other.keys()
    assert len(both) >= 2
    assert all(one[step] == other[step] for step in both)
    assert all(len(found) == 1 for found in (*one.values(), *other.values()))
