"""Ranks that each hold a part of a model: they learn, measure and save what one machine would."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from jupiterd.workers.tensor_file import load_tensors
from tests.support.workers.gangs import BATCH, ENGINES, Gangs, Told

pytestmark = [pytest.mark.net, pytest.mark.timeout(150), pytest.mark.xdist_group("gangs")]

STEPS = 6


def cut(stage: int, *parts: int) -> dict[str, object]:
    return {"partition": {"stage": stage, "parts": list(parts)}}


def losses(told: Told) -> list[float]:
    assert told["error"] == ""
    return [step["loss"] for step in told["steps"]]


def checkpoint(folder: Path, step: int = STEPS) -> Path:
    return folder / "0" / f"checkpoint-{step:08}"


def tensors(folder: Path) -> dict[str, np.ndarray]:
    weights = load_tensors(folder / "model.safetensors")
    return {**weights, **load_tensors(folder / "training_state" / "optimizer.safetensors")}


def alone(gangs: Gangs, folder: Path, engine: str) -> tuple[Sequence[float], Path]:
    folder.mkdir()
    (told,) = gangs.trained(folder, engine, STEPS, (0.0,), micro_batches=(BATCH,))
    return losses(told), checkpoint(folder)


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
    ours, theirs = tensors(checkpoint(folder)), tensors(its_checkpoint)
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        np.testing.assert_allclose(ours[name], values, atol=1e-4, err_msg=name)
    assert "Sync=OK" in (folder / "1" / "log").read_text()
