"""Ranks that each hold a part of a model: they learn, measure and save what one machine would."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jupiterd.daemon.artifacts.checkpoint_assembly import assemble
from jupiterd.workers.tensor_file import load_tensors
from tests.support.workers.gangs import BATCH, ENGINES, Gangs, Told, plan_of

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

STEPS = 6


def cut(stage: int, *parts: int) -> dict[str, object]:
    return {"partition": {"stage": stage, "parts": list(parts)}}


def losses(told: Told) -> list[float]:
    assert told["error"] == ""
    return [step["loss"] for step in told["steps"]]


def alone_checkpoint(folder: Path) -> Path:
    return folder / "0" / f"checkpoint-{STEPS:08}"


def together(folder: Path, ranks: int, step: int = STEPS) -> Path:
    """Return a checkpoint of all ranks' parts."""
    parts = [folder / str(rank) / f"part-{step:08}" for rank in range(ranks)]
    assemble(parts, folder / "checkpoint")
    return folder / "checkpoint"


def tensors(folder: Path) -> dict[str, np.ndarray]:
    weights = load_tensors(folder / "model.safetensors")
    return {**weights, **load_tensors(folder / "training_state" / "optimizer.safetensors")}


def alone(gangs: Gangs, folder: Path, engine: str) -> tuple[Sequence[float], Path]:
    folder.mkdir()
    (told,) = gangs.trained(folder, engine, STEPS, (0.0,), micro_batches=(BATCH,))
    return losses(told), alone_checkpoint(folder)


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("stage", "parts"), [(1, (1, 1)), (2, (24, 12, 16)), (3, (24, 12, 16))])
def test_they_learn_and_save_what_one_machine_does(
    gangs: Gangs, engine: str, stage: int, parts: tuple[int, ...], tmp_path: Path
) -> None:
    wanted, its_checkpoint = alone(gangs, tmp_path / "one", engine)
    folder = tmp_path / "many"
    folder.mkdir()
    told = gangs.trained(
        folder,
        engine,
        STEPS,
        (0.0,) * len(parts),
        micro_batches=(2, 3, 4)[: len(parts)],
        more_params=cut(stage, *parts),
    )
    for one in told:
        assert losses(one) == pytest.approx(wanted, abs=1e-4)
    ours, theirs = tensors(together(folder, len(parts))), tensors(its_checkpoint)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, atol=1e-4, err_msg=name)
    assert "Sync=OK" in (folder / "1" / "log").read_text()


@pytest.mark.full
@pytest.mark.parametrize("engine", ENGINES)
def test_others_go_on_with_another_stage_and_other_parts(
    gangs: Gangs, engine: str, tmp_path: Path
) -> None:
    plan = plan_of(STEPS).model_copy(update={"checkpoint_every_steps": STEPS // 2})
    often = {"plan": plan.to_plain()}
    first, then = tmp_path / "first", tmp_path / "then"
    first.mkdir()
    then.mkdir()
    told = gangs.trained(
        first, engine, STEPS, (0.0,) * 3, (2, 3, 4), more_params=often | cut(2, 24, 12, 16)
    )
    half = together(first, 3, STEPS // 2)
    again = gangs.trained(
        then,
        engine,
        STEPS,
        (0.0,) * 2,
        (2, 3),
        more_inputs={"checkpoint": str(half)},
        more_params=often | cut(3, 0, 1),
    )
    for one in again:
        assert losses(one) == pytest.approx(losses(told[0])[STEPS // 2 :], abs=1e-5)
