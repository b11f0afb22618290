"""What `mlx_lm lora --train` runs, with a call after each step.

Owns its settings, but for those that a measurement is about.
"""

from argparse import Namespace
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx_lm import load
from mlx_lm.lora import CONFIG_DEFAULTS
from mlx_lm.tuner.callbacks import TrainingCallback

from tests.bench.train.rivals.own_steps import Ended


class StepEnds(TrainingCallback):
    """Calls somebody after each step."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended

    def on_train_loss_report(self, train_info: dict[str, Any]) -> None:
        """Be told of a step's loss."""
        self._ended()


def load_in_fp32(model: Path) -> tuple[Any, Any]:
    """Return a model and its tokenizer."""
    found: Any = load(str(model))
    found[0].set_dtype(mx.float32)
    return found[:2]


def arguments(
    data: Path, loaded: Any, steps: int, sequences: int, length: int, **more: Any
) -> Namespace:
    """Return what the command would have been given; length: of a sequence, in tokens."""
    settings: dict[str, Any] = {
        "data": str(data),
        "train": True,
        "num_layers": len(loaded.layers),
        "batch_size": sequences,
        "iters": steps,
        "steps_per_report": 1,
        "optimizer": "adamw",
        "max_seq_length": length + 1,
        "adapter_path": str(data / "adapters"),
    }
    return Namespace(**CONFIG_DEFAULTS | settings | more)
