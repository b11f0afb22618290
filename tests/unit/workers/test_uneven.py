"""Two ranks of unlike speed: each takes its share, and they learn what one machine learns."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]

from jupiterd.cycle.plan import TrainPlan, derive
from jupiterd.cycle.shares import FIRST_LOOK_STEPS
from jupiterd.gang.environment import worker_environment
from jupiterd.gang.routes import free_port
from tests.unit.workers.tiny_run import make_inputs, tiny_shape, train_params

pytestmark = [pytest.mark.net, pytest.mark.timeout(150)]

HOST = "127.0.0.1"
STEPS, BATCH = 50, 16
FAST_S, SLOW_S = 0.01, 0.03
"""What a sequence takes on either rank, beside the little that is computed."""

ENGINES = ("torch", "mlx")
Told = Mapping[str, Any]


def plan_of(steps: int) -> TrainPlan:
    changes = {"steps": steps, "batch_sequences": BATCH, "learning_rate": 2e-3}
    return derive(tiny_shape(), 1, changes).model_copy(update={"checkpoint_every_steps": steps})


def started(folder: Path, spec: dict[str, Any]) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    path = folder / "spec.json"
    path.write_text(json.dumps(spec | {"folder": str(folder)}))
    environment = worker_environment("train", {"engine": spec["engine"], "threads": 1})
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.unit.workers.uneven_rank", str(path)],
            env=environment,
            cwd=Path(__file__).resolve().parents[3],
            stdout=log,
            stderr=log,
        )


def trained(
    folder: Path,
    engine: str,
    steps: int,
    sequence_s: Sequence[float],
    micro_batches: Sequence[int] = (2, 3),
    nudge_step: int = 0,
    odd: Mapping[str, Any] | None = None,
    more_inputs: Mapping[str, str] | None = None,
    more_params: Mapping[str, Any] | None = None,
) -> list[Told]:
    """Train with as many ranks as there are speeds; the last one may be told something else."""
    inputs, ranks = make_inputs(folder) | dict(more_inputs or {}), len(sequence_s)
    store = TCPStore(HOST, 0, is_master=True, wait_for_workers=False)
    meeting = {
        "engine": engine,
        "world_size": ranks,
        "epoch": 1,
        "store_host": HOST,
        "store_port": store.port,
        "timeout_s": 60,
        "ring": [f"{HOST}:{free_port(HOST)}" for _ in range(ranks)],
    }
    processes = [
        started(
            folder / str(rank),
            {
                "engine": engine,
                "inputs": inputs,
                "sequence_s": sequence_s[rank],
                "nudge_step": nudge_step if rank == ranks - 1 else 0,
                "params": train_params(tiny_shape(), plan_of(steps), rank=rank, **meeting)
                | {"micro_batch_sequences": micro_batches[rank], **(more_params or {})}
                | ((odd or {}) if rank == ranks - 1 else {}),
            },
        )
        for rank in range(ranks)
    ]
    for process in processes:
        process.wait(120)
    return [told_by(folder / str(rank)) for rank in range(ranks)]


def told_by(folder: Path) -> Told:
    path = folder / "steps.json"
    assert path.exists(), (folder / "log").read_text()
    return json.loads(path.read_text())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_slower_rank_takes_less_and_all_learn_what_one_machine_learns(
    engine: str, tmp_path: Path
) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    fast, slow = trained(tmp_path / "two", engine, STEPS, (FAST_S, SLOW_S))
    (alone,) = trained(tmp_path / "one", engine, STEPS, (0.0,), micro_batches=(BATCH,))
    assert (fast["error"], slow["error"]) == ("", "")

    losses = [[step["loss"] for step in told["steps"]] for told in (fast, slow, alone)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6), "ranks see the same loss"
    assert losses[0] == pytest.approx(losses[2], abs=1e-4), "the loss of one machine"

    assert {step["sequences"] for step in fast["steps"][:FIRST_LOOK_STEPS]} == {BATCH / 2}
    later = [told["steps"][FIRST_LOOK_STEPS + 1 :] for told in (fast, slow)]
    assert median(step["sequences"] for step in later[0]) == pytest.approx(12, abs=1)
    assert median(map(over_ideal, *later)) <= 1.15

    log = (tmp_path / "two" / "1" / "log").read_text()
    assert "Sync=OK" in log
    assert log.strip().splitlines()[-1].endswith("Training finished. Gradients in sync.")


def over_ideal(*ranks: Told) -> float:
    """Return how long a step was computed, by the best time that any division could have had."""
    rates = [step["sequences"] / step["computed_s"] for step in ranks]
    return max(step["computed_s"] for step in ranks) / (BATCH / sum(rates))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_weight_changed_on_one_rank_stops_the_run_and_names_it(
    engine: str, tmp_path: Path
) -> None:
    told = trained(tmp_path, engine, 120, (0.0, 0.0, 0.0), (2, 2, 2), nudge_step=60)
    for one in told:
        assert one["error"] == "rank 2 holds other weights than the rest at step 100"
        assert len(one["steps"]) == 100, "nothing was wrong at the check before"
