"""What training asks of an engine: one rank's model, optimizer and ties to the other ranks.

A port: `torch_engine` and `mlx_engine` are behind it. Tensors cross it as numpy arrays by Hugging
Face's names, and the moments of AdamW as `exp_avg.NAME` and `exp_avg_sq.NAME`, so that a
checkpoint of one engine is continued by the other.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

Tensors = Mapping[str, NDArray[np.float32]]
"""Name -> values."""

MicroBatch = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Inputs and targets, each [sequences, seq_len]."""

BETAS = (0.9, 0.95)
"""Of AdamW, on every engine."""

EPSILON = 1e-8
"""Of AdamW, on every engine."""

MOMENTS = ("exp_avg", "exp_avg_sq")
"""Of AdamW: the means of the gradient and of its square."""


Updating = Callable[[], AbstractContextManager[None]]


def is_decayed(name: str, dimensions: int) -> bool:
    """Say whether AdamW pulls a parameter towards zero: matrices, neither embeddings nor norms."""
    return dimensions > 1 and "embed" not in name


class Engine(Protocol):
    """One rank of a gang, or the only one."""

    updating: Updating
    """Entered around each optimizer update; out of it, the weights are those of a whole step."""

    @property
    def name(self) -> str:
        """Return the framework and what its ranks talk over, such as torch/gloo."""
        ...

    @property
    def device(self) -> str:
        """Return what it computes on: cpu, cuda or gpu."""
        ...

    @property
    def rank(self) -> int:
        """Return which of the ranks this is."""
        ...

    @property
    def world_size(self) -> int:
        """Return how many ranks there are."""
        ...

    @property
    def config(self) -> Qwen3Config:
        """Return the model's configuration."""
        ...

    def weights(self) -> Tensors:
        """Return the weights as they are now, tied ones once."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Take over weights of the same names and shapes."""
        ...

    def moments(self) -> Tensors:
        """Return the optimizer's moments; none before the first step."""
        ...

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Go on with moments as they were after `step` steps."""
        ...

    def random_state(self) -> str:
        """Return the generator's state in hex digits; empty where training draws nothing."""
        ...

    def load_random_state(self, state: str) -> None:
        """Take over a generator's state; an empty one, or another engine's, changes nothing."""
        ...

    def begin(self, agreement: Mapping[str, Any]) -> None:
        """Make ready to train, once everything is loaded: every rank has rank 0's weights then.

        Raises:
            WorkFailedError: the ranks don't mean the same by `agreement`.
        """
        ...

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step on the batch that all ranks share.

        The gradient is that of the mean cross-entropy over the tokens of the global batch, clipped.

        Returns:
            This rank's part of that mean (in nats), and the gradient's length before clipping.
        """
        ...

    def agree(self, loss: float, *, wants_stop: bool) -> tuple[float, bool]:
        """Return the sum of all ranks' parts of the loss, and whether any of them wants to stop."""
        ...
