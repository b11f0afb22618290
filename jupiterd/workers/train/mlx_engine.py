"""Training on MLX: one rank's model and optimizer, and its step.

Owns what MLX computes; the model is mlx-lm's. Doesn't know files, the daemon, or how the ranks met
(`mlx_ring`).

The loss is the mean cross-entropy over the tokens of the global batch, however many ranks and micro
batches share it: each micro batch's sum is divided by the global number of tokens, and the ranks'
gradients, which the ring averages, are multiplied by their number beforehand.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

import mlx.core as mx
import numpy as np
from blake3 import blake3
from mlx.nn.losses import cross_entropy
from mlx.nn.utils import value_and_grad
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from mlx_lm.models.qwen3 import Model, ModelArgs
from numpy.typing import NDArray

from jupiterd import __version__
from jupiterd.cycle.plan import ModelShape, TrainPlan
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.train.engine import MOMENTS, MicroBatch, Tensors, Updating
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.mlx_adamw import AdamW
from jupiterd.workers.train.mlx_ring import Ring
from jupiterd.workers.train.model_config import config_fields, model_config

CLIP_EPSILON = 1e-6
"""What torch adds to a gradient's length before it divides by it."""


class MlxEngine:
    """One rank on MLX."""

    def __init__(self, shape: ModelShape, plan: TrainPlan, end_token: int, ring: Ring) -> None:
        self.updating: Updating = nullcontext
        self._plan = plan
        self._ring = ring
        self.config = model_config(shape, end_token)
        self._model = Model(ModelArgs.from_dict(config_fields(self.config)))
        self._optimizer = AdamW(plan.weight_decay)
        self._loss_and_gradients = value_and_grad(self._model, self._loss)
        self.device = device()
        self.rank, self.world_size = ring.rank, ring.world_size
        self.name = "mlx/ring" if ring.world_size > 1 else "mlx"
        shapes = {name: value.shape for name, value in self._parameters().items()}
        self.load_weights(first_weights(shapes, plan.seed))

    def weights(self) -> Tensors:
        """Return the weights as they are now, tied ones once."""
        return _arrays(self._parameters())

    def load_weights(self, weights: Tensors) -> None:
        """Take over weights of the same names and shapes."""
        self._replace({name: mx.array(values) for name, values in weights.items()})

    def moments(self) -> Tensors:
        """Return AdamW's moments; none before the first step."""
        kept = (self._optimizer.mean, self._optimizer.mean_square)
        return {
            f"{moment}.{name}": values
            for moment, arrays in zip(MOMENTS, kept, strict=True)
            for name, values in _arrays(arrays).items()
        }

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Go on with moments as they were after `step` steps."""
        optimizer, (mean, mean_square) = self._optimizer, MOMENTS
        optimizer.steps = step
        for name in self._parameters():
            optimizer.mean[name] = mx.array(moments[f"{mean}.{name}"])
            optimizer.mean_square[name] = mx.array(moments[f"{mean_square}.{name}"])

    def random_state(self) -> str:
        """Return nothing: no step draws random numbers."""
        return ""

    def load_random_state(self, state: str) -> None:
        """Ignore what torch left."""

    def begin(self, agreement: Mapping[str, Any]) -> None:
        """Compare with the other ranks, and take over rank 0's weights."""
        versions = {"jupiter": __version__, "mlx": version("mlx"), "mlx-lm": version("mlx-lm")}
        shapes = {name: list(value.shape) for name, value in self._parameters().items()}
        self._ring.compare({"versions": versions, "shapes": shapes, **agreement})
        # Ranks that load the same checkpoint have the same weights; sharing them takes a while.
        if not self._ring.is_same(_digest(self.weights()), "compares its weights"):
            self._replace(self._ring.share_first(self._parameters()))

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step; return this rank's part of the loss, and the gradient's norm."""
        share, gradients = self._accumulate(micro_batches)
        shared = _flat(self._ring.average(gradients))
        norm = length(shared)
        scale = min(1.0, self._plan.clip_norm / (norm + CLIP_EPSILON))
        clipped = {name: gradient * scale for name, gradient in shared.items()}
        optimizer = self._optimizer
        with self.updating():
            self._replace(optimizer.update(self._parameters(), clipped, learning_rate))
            mx.eval(optimizer.mean, optimizer.mean_square)
        return share, norm

    def agree(self, loss: float, *, wants_stop: bool) -> tuple[float, bool]:
        """Return the sum of all ranks' parts of the loss, and whether any of them wants to stop."""
        return self._ring.agree(loss, wants_stop=wants_stop)

    def _accumulate(self, micro_batches: Sequence[MicroBatch]) -> tuple[float, Any]:
        """Return this rank's part of the loss, and its gradients, computed to the end."""
        total, gradients = 0.0, None
        for inputs, targets in micro_batches:
            loss, more = self._loss_and_gradients(self._ids(inputs), self._ids(targets))
            gradients = more if gradients is None else tree_map(mx.add, gradients, more)
            mx.eval(loss, gradients)
            total += loss.item() / self.world_size
        return total, gradients

    def _loss(self, inputs: mx.array, targets: mx.array) -> mx.array:
        """Return this micro batch's part of the global loss, times the number of ranks.

        inputs, targets: int32[sequences, seq_len]
        """
        logits = self._model(inputs).astype(mx.float32)
        global_tokens = self._plan.batch_sequences * inputs.shape[1]
        losses = cross_entropy(logits, targets, reduction="none")
        return losses.sum(axis=-1).sum() * (self.world_size / global_tokens)

    def _ids(self, tokens: NDArray[np.int64]) -> mx.array:
        """MLX doesn't look whether a token is in the vocabulary; so we do."""
        if int(tokens.max()) >= self.config.vocab_size:
            raise CorruptArtifactError(
                f"the shards hold token {tokens.max()}, and the vocabulary has "
                f"{self.config.vocab_size}"
            )
        return mx.array(tokens.astype(np.int32))

    def _parameters(self) -> dict[str, mx.array]:
        return _flat(self._model.parameters())

    def _replace(self, parameters: Mapping[str, mx.array]) -> None:
        self._model.update(tree_unflatten(list(parameters.items())))
        mx.eval(self._model.parameters())


def length(gradients: Mapping[str, mx.array]) -> float:
    """Return the L2 norm of all gradients together.

    Summed row by row, and the rows in float64: MLX adds up half a million squares in one go with
    an error of a ten-thousandth, and then every step is clipped a little differently than on torch.
    """
    rows = [mx.square(gradient).sum(axis=-1) for gradient in gradients.values()]
    mx.eval(rows)
    return math.sqrt(sum(float(np.array(row).sum(dtype=np.float64)) for row in rows))


def device() -> str:
    """Return what MLX computes on: cpu or gpu."""
    return "gpu" if mx.default_device().type == mx.gpu else "cpu"


def _flat(tree: Any) -> dict[str, mx.array]:  # noqa: ANN401 - a tree of arrays
    return dict(tree_flatten(tree))


def _digest(tensors: Tensors) -> bytes:
    hasher = blake3()
    for name, values in sorted(tensors.items()):
        hasher.update(name.encode())
        hasher.update(np.ascontiguousarray(values).tobytes())
    return hasher.digest()


def _arrays(arrays: Mapping[str, mx.array]) -> Tensors:
    return {name: np.array(value, dtype=np.float32) for name, value in arrays.items()}
