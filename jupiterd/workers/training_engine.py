"""The interface of a training engine: one rank's model, optimizer and links to the other ranks.

`torch_engine` and `mlx_engine` implement it. Tensors cross it as numpy arrays under Hugging Face's
names, and the optimizer's state as KIND.NAME, so that one engine continues a checkpoint of the
other. The optimizers' shared constants and rules stand here, too.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray
from transformers import PreTrainedConfig

from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from jupiterd.cycle.training.engine_options import (
    DeviceAbilities,
    EngineOptions,
    ResolvedOptions,
)
from jupiterd.cycle.training.partition.partition import Partition

Tensors = Mapping[str, NDArray[np.float32]]
"""Parameter name -> float32 values."""

NamedTensor = tuple[str, NDArray[np.float32]]
"""A name and float32 values."""


class TensorPiece(NamedTuple):
    """Numbers that stand together in a tensor which ranks share."""

    name: str
    """Of a weight, or KIND.NAME of the optimizer's state."""
    start: int
    """Of the first number, in the tensor flattened in row-major order."""
    values: NDArray[np.float32]
    """[numbers]"""


Gradients = Mapping[str, Any]
"""Parameter name -> a gradient in the engine's own type; it never leaves the process."""

Rows = Sequence[Sequence[float]]
"""[ranks][values]: the numbers of each rank, in the order of the ranks."""


class MicroBatch(NamedTuple):
    """Sequences that pass through a model together; each array is [sequences, tokens]."""

    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]
    documents: NDArray[np.int64] | None = None
    """[sequences, tokens]: the document of each input, which attends to no other. None: each input
    attends to all before it."""
    counted: NDArray[np.bool_] | None = None
    """[sequences, tokens]: the targets that the loss counts; None: all."""
    counted_in_step: int = 0
    """Counted targets in the whole step's batch, over all ranks: the loss is their mean. 0: all."""
    token_keys: NDArray[np.uint32] | None = None
    """[sequences, tokens]: what an adapter's dropout follows from (`dropout_mask`). None: none is
    left out."""

    def divisor(self, batch_sequences: int) -> int:
        """Return the divisor of the summed losses in a step of so many sequences: a token count."""
        return self.counted_in_step or batch_sequences * self.inputs.shape[1]


BETAS = (0.9, 0.95)
"""AdamW's decay rates of the two moments (Loshchilov and Hutter 2019), on every engine."""

EPSILON = 1e-8
"""AdamW's addend to the denominator, on every engine."""

MOMENTS = ("exp_avg", "exp_avg_sq")
"""AdamW's state: the running means of the gradient and of its square."""


MOMENTUM = "momentum"
"""Muon's state: the running mean of the gradient."""

LOW = "low"
"""State of bf16 weights: the part that rounding lost."""

LOSS_SCALE = "loss_scale"
"""State of fp16: the loss scale and what adjusts it, one for all parameters."""

MUON_BETA = 0.95
NEWTON_SCHULZ = (3.4445, -4.775, 2.0315)
"""Coefficients of the quintic iteration that orthogonalizes a matrix, tuned for a steep slope at
zero (Jordan et al. 2024, "Muon")."""
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
    """Say whether weight decay applies: to matrices, but neither to embeddings nor to norms."""
    return dimensions > 1 and not _is_embedding(name)


def is_muons(name: str, dimensions: int) -> bool:
    """Say whether Muon updates a parameter, where Muon is used: the layers' matrices alone."""
    return dimensions == 2 and not _is_embedding(name) and "lm_head" not in name


def moments_of(
    name: str, dimensions: int, options: EngineOptions | ResolvedOptions
) -> tuple[str, ...]:
    """Return the kinds of optimizer state of a parameter."""
    by_muon = options.optimizer == "muon" and is_muons(name, dimensions)
    low = (LOW,) if options.weights == "bf16" else ()
    return ((MOMENTUM,) if by_muon else MOMENTS) + low


def muon_rate(rate: float, shape: Sequence[int]) -> float:
    """Return Muon's learning rate for a matrix: 0.2 sqrt(max(rows, columns)) times AdamW's.

    Its updates then have the root mean square of AdamW's (Liu et al. 2025, arXiv 2502.16982).
    """
    return rate * 0.2 * math.sqrt(max(shape))


def _is_embedding(name: str) -> bool:
    return any(part in name for part in _EMBEDDINGS)


Updating = Callable[[], AbstractContextManager[None]]


class TrainingEngine(Protocol):
    """One rank of a gang, or the only one."""

    updating: Updating
    """A context around each optimizer update; outside it the weights are of a whole step."""

    batch_sequences: int
    """Sequences of a step over all ranks; loss and gradient are means over them."""

    computed_s: float
    """Seconds that this rank computed in the last step, without waiting for other ranks."""

    @property
    def gpus(self) -> Sequence[str]:
        """Return the names of the GPUs that it computes on; none for a CPU."""
        ...

    @property
    def abilities(self) -> DeviceAbilities:
        """Return what was found out about the device."""
        ...

    @property
    def peak_flops_per_s(self) -> float:
        """Return the device's peak in floating point operations per second, in bf16; 0: unknown."""
        ...

    def memory_used_bytes(self) -> int:
        """Return the bytes of GPU memory in use; 0 for a CPU."""
        ...

    @property
    def platform(self) -> str:
        """Return a name of what decides rounding: equal ones compute equally to the last bit."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Return package -> version, for the packages that must be the same on all ranks."""
        ...

    @property
    def name(self) -> str:
        """Return the framework and the backend of its collectives, such as torch/gloo."""
        ...

    @property
    def device(self) -> str:
        """Return the type of its device: cpu, cuda or gpu."""
        ...

    @property
    def rank(self) -> int:
        """Return the number of this rank, from 0."""
        ...

    @property
    def world_size(self) -> int:
        """Return how many ranks there are."""
        ...

    @property
    def options(self) -> ResolvedOptions:
        """Return precision, optimizer and kernels in use, and why each was chosen."""
        ...

    @property
    def adapter(self) -> AdapterOptions | None:
        """Return which adapter is trained beside frozen weights; None: the weights are trained."""
        ...

    @property
    def config(self) -> PreTrainedConfig:
        """Return the model's configuration."""
        ...

    @property
    def partition(self) -> Partition | None:
        """Return what of the model each rank holds; None: all of it.

        Where it isn't None, whatever goes through all weights or moments is done by all ranks
        together: `weights`, `moments`, `each_weight`, `each_moment`, `begin`, `step`, `nats`. All
        make as many passes in a step and in `nats`.
        """
        ...

    @property
    def base_partition(self) -> Partition | None:
        """Return what of the frozen model beside an adapter each rank holds; None: all of it.

        The adapter is whole on every rank, so only `step` and `nats` are done by all together; all
        make as many passes in them.
        """
        ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return name -> shape of the trained weights, whole, in their order."""
        ...

    def each_weight(self) -> Iterator[NamedTensor]:
        """Yield the trained weights, whole, one by one, in the order of `shapes`.

        So nobody needs memory for all of them. An array counts until the next one is asked for.
        """
        ...

    def each_moment(self) -> Iterator[NamedTensor]:
        """Yield the optimizer's state as `moments` has it, whole, in the same way."""
        ...

    def own_pieces(self) -> Iterator[TensorPiece]:
        """Yield what this rank holds of weights and optimizer state; no other one takes part.

        Only with a partition: pieces of all ranks make up all tensors, and none lies with two.
        """
        ...

    def own_weights(self) -> Iterator[TensorPiece]:
        """Yield what this rank holds of the weights alone, in the same way; they may be views."""
        ...

    def load_own(self, pieces: Iterable[TensorPiece]) -> None:
        """Replace the weights by others of which each rank gives what it holds.

        Only with a partition; all ranks take part.

        pieces: those that `own_weights` yields, with other values
        """
        ...

    def gather_numbers(
        self, own: NDArray[np.float32], bounds: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return the numbers of all ranks, one rank's behind the other's: [numbers].

        Only with a partition; all ranks take part.

        bounds: where each rank's begin, and the end of the last, the same on all ranks
        """
        ...

    def load_base(self, weights: Tensors) -> None:
        """Fill the frozen model that an adapter is trained beside; weights: as without an adapter.

        Only where `adapter` says that there is one, before `load_weights` and before anything is
        computed: magnitudes begin as the lengths of its matrices' rows.
        """
        ...

    def base_digest(self) -> str:
        """Return a hash of the frozen matrices that are quantized; empty where none is."""
        ...

    def weights(self) -> Tensors:
        """Return a copy of the trained weights in float32; tied weights appear once."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Replace the weights by others of the same names and shapes.

        Each is asked for once, so they may be read from a file one by one.
        """
        ...

    def exact_weights(self) -> Tensors:
        """Return a copy of the weights, plus what rounding to bf16 lost of them."""
        ...

    def load_exact(self, weights: Tensors) -> None:
        """Replace the weights, and store what rounding to bf16 loses of them."""
        ...

    def moments(self) -> Tensors:
        """Return a copy of the optimizer's state as KIND.NAME: zeros before the first step."""
        ...

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Replace the optimizer's state by that after `step` steps; asks for each once."""
        ...

    @property
    def copies_beside(self) -> bool:
        """Say whether `copy_state` may run in another thread while this one computes gradients."""
        ...

    def copy_state(self, weights: Tensors, moments: Tensors) -> None:
        """Copy weights and optimizer state, after a step at the least, into given arrays.

        weights, moments: arrays in their shapes, by the names that `weights` and `moments` have
        """
        ...

    def random_state(self) -> str:
        """Return the random generator's state in hex digits; empty where training draws nothing."""
        ...

    def load_random_state(self, state: str) -> None:
        """Replace the random generator's state; an empty or another engine's state is ignored."""
        ...

    def begin(self, *, has_same_weights: bool) -> None:
        """Prepare to train, once everything is loaded; copies rank 0's weights to every rank.

        has_same_weights: the ranks have compared theirs and found them equal: nothing is copied
        """
        ...

    def take_micro_batch(self, sequences: int) -> None:
        """Set how much memory the loss takes by micro batches of so many, before `begin`."""
        ...

    def try_pass(self, batch: MicroBatch) -> float:
        """Compute a micro batch's gradient as training does, but not compiled; return its s.

        Neither weights nor optimizer nor random generator change. The gradients are kept beside
        those of the next pass, as in a step. Only before `begin`: other ranks hear nothing of it.

        Raises what the framework raises where memory runs out.
        """
        ...

    def end_passes(self) -> None:
        """Throw away what `try_pass` has left behind."""
        ...

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step on the batch that all ranks share.

        The gradient is that of the mean cross-entropy over the tokens of the global batch, clipped.

        Returns:
            This rank's part of that mean in nats, and the gradient's norm before clipping. The norm
            is 0 where fp16 overflowed, and not a number where the gradient isn't one: in both cases
            no weight was changed, and in the second training can't go on.
        """
        ...

    def sum_gradients(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> float:
        """Do the first half of a step: sum the gradient over all ranks and store it.

        Returns this rank's part of the loss in nats.

        counts: False where the rank has no share in the batch and contributes a zero
        """
        ...

    def take_step(self, learning_rate: float) -> float:
        """Do the second half: update the weights by the stored gradient; return its norm.

        The norm is 0, or not a number, in the cases that `step` names.
        """
        ...

    def take_gradients(self) -> Gradients:
        """Remove and return the stored gradient, without an update."""
        ...

    def put_gradients(self, gradients: Gradients) -> None:
        """Store a gradient that `take_gradients` returned."""
        ...

    def nats(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Return the summed cross-entropy in nats; neither weights nor optimizer change."""
        ...

    def logits(self, tokens: NDArray[np.int64], weights: Tensors | None) -> NDArray[np.float32]:
        """Return the logits after the last token of a sequence, computed with the given weights.

        In fp32, whatever training computes in; the model's own weights stay.

        tokens: [tokens]; returned: [vocabulary]
        weights: None: the model's own; with a partition all ranks take part then
        """
        ...

    def gather(self, values: Sequence[float]) -> Rows:
        """All-gather: return every rank's values, equal on all ranks; at least float32 precise."""
        ...
