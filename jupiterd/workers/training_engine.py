"""What training asks of an engine: one rank's model, optimizer and ties to the other ranks.

A port: `torch_engine` and `mlx_engine` are behind it. Tensors cross it as numpy arrays by Hugging
Face's names, and what the optimizer keeps as KIND.NAME, so that a checkpoint of one engine is
continued by the other. What the optimizers have in common stands here, too.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray
from transformers import PreTrainedConfig

from jupiterd.cycle.training.engine_options import EngineOptions, ResolvedOptions

Tensors = Mapping[str, NDArray[np.float32]]
"""Name -> values."""

Gradients = Mapping[str, Any]
"""Name -> a gradient, in the engine's own form: it never leaves the process."""

Rows = Sequence[Sequence[float]]
"""Numbers of each rank, in the order of the ranks."""


class MicroBatch(NamedTuple):
    """Sequences that pass through a model together; each array is [sequences, tokens]."""

    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]
    documents: NDArray[np.int64] | None = None
    """Which document each input is of: it sees no other. None: it sees all that came before."""
    counted: NDArray[np.bool_] | None = None
    """Which targets the loss counts; None: all."""
    counted_in_step: int = 0
    """So many targets of the whole step's batch, of all ranks, count: the loss is their mean."""

    def divisor(self, batch_sequences: int) -> int:
        """Return what the sum of the losses is divided by, in a step of so many sequences."""
        return self.counted_in_step or batch_sequences * self.inputs.shape[1]


BETAS = (0.9, 0.95)
"""Of AdamW, on every engine."""

EPSILON = 1e-8
"""Of AdamW, on every engine."""

MOMENTS = ("exp_avg", "exp_avg_sq")
"""Of AdamW: the means of the gradient and of its square."""


MOMENTUM = "momentum"
"""Of Muon: the mean of the gradient."""

LOW = "low"
"""Of weights in bf16: what rounding lost."""

LOSS_SCALE = "loss_scale"
"""Of fp16: the factor and what moves it; for all parameters together."""

MUON_BETA = 0.95
NEWTON_SCHULZ = (3.4445, -4.775, 2.0315)
"""Coefficients that lengthen short directions fastest (Keller Jordan)."""
NEWTON_SCHULZ_STEPS = 5
NEWTON_SCHULZ_EPSILON = 1e-7

_EMBEDDINGS = ("embed", "wte", "wpe")


def digest(tensors: Tensors) -> bytes:
    """Return BLAKE3 of tensors, their names included."""
    hasher = blake3()
    for name, values in sorted(tensors.items()):
        hasher.update(name.encode())
        hasher.update(np.ascontiguousarray(values).tobytes())
    return hasher.digest()


def is_decayed(name: str, dimensions: int) -> bool:
    """Say whether a parameter is pulled towards zero: matrices, neither embeddings nor norms."""
    return dimensions > 1 and not _is_embedding(name)


def is_muons(name: str, dimensions: int) -> bool:
    """Say whether a parameter is one of Muon's, where Muon is used: the layers' matrices."""
    return dimensions == 2 and not _is_embedding(name) and "lm_head" not in name


def moments_of(
    name: str, dimensions: int, options: EngineOptions | ResolvedOptions
) -> tuple[str, ...]:
    """Return the kinds of what the optimizer keeps of a parameter."""
    by_muon = options.optimizer == "muon" and is_muons(name, dimensions)
    low = (LOW,) if options.weights == "bf16" else ()
    return ((MOMENTUM,) if by_muon else MOMENTS) + low


def muon_rate(rate: float, shape: Sequence[int]) -> float:
    """Return Muon's own rate for a matrix: its steps are as large as AdamW's at the same rate."""
    return rate * 0.2 * math.sqrt(max(shape))


def _is_embedding(name: str) -> bool:
    return any(part in name for part in _EMBEDDINGS)


Updating = Callable[[], AbstractContextManager[None]]


class TrainingEngine(Protocol):
    """One rank of a gang, or the only one."""

    updating: Updating
    """Entered around each optimizer update; out of it, the weights are those of a whole step."""

    batch_sequences: int
    """Of a step, over all ranks: its loss and its gradient are the mean over them."""

    computed_s: float
    """How long this rank computed in the last step, waiting for others not counted."""

    @property
    def gpus(self) -> Sequence[str]:
        """Return the names of the GPUs that it computes on; none for a CPU."""
        ...

    @property
    def peak_flops_per_s(self) -> float:
        """Return what its device can do at best, in bf16; 0 where nobody knows."""
        ...

    def memory_used_bytes(self) -> int:
        """Return how much of a GPU's memory is in use; 0 for a CPU."""
        ...

    @property
    def platform(self) -> str:
        """Return what decides how numbers are rounded: equal ones compute alike to the last bit."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions that must be the same on all ranks, by package."""
        ...

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
    def options(self) -> ResolvedOptions:
        """Return how it computes, and why."""
        ...

    @property
    def config(self) -> PreTrainedConfig:
        """Return the model's configuration."""
        ...

    def weights(self) -> Tensors:
        """Return a copy of the weights as they are now, tied ones once."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Take over weights of the same names and shapes."""
        ...

    def exact_weights(self) -> Tensors:
        """Return a copy of the weights with what rounding to bf16 has lost of them."""
        ...

    def load_exact(self, weights: Tensors) -> None:
        """Take over weights, and keep what rounding to bf16 loses of them."""
        ...

    def moments(self) -> Tensors:
        """Return a copy of what the optimizer keeps, as KIND.NAME: zeros before the first step."""
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

    def begin(self, *, has_same_weights: bool) -> None:
        """Make ready to train, once everything is loaded: every rank has rank 0's weights then.

        has_same_weights: all ranks have compared theirs, and they are the same
        """
        ...

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step on the batch that all ranks share.

        The gradient is that of the mean cross-entropy over the tokens of the global batch, clipped.

        Returns:
            This rank's part of that mean (in nats), and the gradient's length before clipping: 0
            where fp16 overflowed and nothing was changed, and not a number where the gradient is
            none; then nothing was changed either, and training can't go on.
        """
        ...

    def sum_gradients(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> float:
        """Do the first half of a step: hold the gradient of all ranks; return our part of the loss.

        counts: no where the rank takes part with a zero, since it has no share in the batch
        """
        ...

    def take_step(self, learning_rate: float) -> float:
        """Do the second half: update the weights by the gradient that is held; return its length.

        That is 0, or not a number, where `step` says so.
        """
        ...

    def take_gradients(self) -> Gradients:
        """Return the gradient that is held instead of stepping along it."""
        ...

    def put_gradients(self, gradients: Gradients) -> None:
        """Hold a gradient that was taken before."""
        ...

    def nats(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Return the sum of the cross-entropies, without learning: nothing is changed by it."""
        ...

    def logits(self, tokens: NDArray[np.int64], weights: Tensors) -> NDArray[np.float32]:
        """Return what the model says after a sequence, with other weights than it has now.

        Computed in fp32, whatever training computes in.

        tokens: [tokens]; returned: [vocabulary]
        """
        ...

    def gather(self, values: Sequence[float]) -> Rows:
        """Return what each rank has given, the same on all of them; float32 at the least."""
        ...
