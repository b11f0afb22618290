"""Losses beside a folder that mlx-lm quantizes, of our engine and of mlx-lm's own model of it.

    python -m tests.real.quantized_on_mlx MODEL ROWS.npy FOLDER

Owns the computing, which needs a worker's environment: MLX on Linux is forty times slower without
OpenBLAS. Prints JSON: a list of nats a token for each row, by what computed it.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.mlx_folder import loaded_model
from jupiterd.workers.train.checkpoints.checkpoint import load_base
from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
from jupiterd.workers.train.mlx.ring import Ring
from tests.real.quantized_losses import AS_IT_IS, before_and_after, plan_beside, shape_of_folder


def main(model: Path, rows: NDArray[np.int64], folder: Path) -> None:
    """Print what is found."""
    from mlx_lm.convert import convert

    convert(str(model), str(folder), quantize=True, q_bits=8)
    shape = shape_of_folder(folder, rows)
    engine = MlxTrainingEngine(shape, plan_beside(shape, AS_IT_IS), 0, Ring(0, 1))
    load_base(folder, engine)
    engine.begin(has_same_weights=True)
    ours, after = before_and_after(engine, rows)
    found = {"ours": ours, "after": after, "theirs": losses_of(folder, rows)}
    print(json.dumps(found | {"whole": losses_of(model, rows)}))


def losses_of(folder: Path, rows: NDArray[np.int64]) -> list[float]:
    """Return those of mlx-lm's own model, in fp32 as ours computes."""
    import mlx.core as mx
    from mlx import nn

    model: Any = loaded_model(folder)
    model.set_dtype(mx.float32)
    found: list[float] = []
    for row in rows:
        ids = mx.array(row)
        loss: Any = nn.losses.cross_entropy(model(ids[:, :-1]), ids[:, 1:], reduction="mean")
        found.append(float(loss.item()))
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), np.load(sys.argv[2]), Path(sys.argv[3]))
