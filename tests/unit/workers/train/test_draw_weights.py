"""First weights that are drawn once, for all who begin with them."""

from pathlib import Path

import numpy as np

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.workers.train import draw_weights
from jupiterd.workers.train.checkpoints.checkpoint import load_weights
from tests.support.workers.tiny_engine import tiny_engine, tiny_plan
from tests.support.workers.tiny_run import TaskAlone, make_inputs, tiny_shape, train_params


def test_they_are_those_that_one_who_trains_alone_draws(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path)
    plan = tiny_plan(seed=7)
    params = train_params(tiny_shape(), plan)
    task = TaskAlone("draw_weights", params, {"tokenizer": inputs["tokenizer"]}, tmp_path / "out")
    finished = draw_weights.run(task)
    assert finished.outputs == {"weights": "weights"}
    assert finished.counts["parameters"] == parameter_count(tiny_shape())
    engine = tiny_engine(tiny_plan(seed=8))
    load_weights(tmp_path / "out" / "weights", engine)
    drawn = tiny_engine(plan).weights()
    assert all(np.array_equal(engine.weights()[name], drawn[name]) for name in drawn)
