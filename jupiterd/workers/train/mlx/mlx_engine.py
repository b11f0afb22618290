"""The training engine on MLX: one rank's model, optimizer and step.

Owns what MLX computes; the model is mlx-lm's. Doesn't know files, the daemon, or the rendezvous of
ranks (`ring`).

The loss is the mean cross-entropy over the tokens of the global batch, however many ranks and micro
batches share it: each micro batch's sum is divided by the global number of tokens, and the ranks'
gradients, which the ring averages, are multiplied by their number beforehand.
"""

import math
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from typing import Any

import mlx.core as mx
import numpy as np
from mlx.utils import tree_map
from numpy.typing import NDArray

from jupiterd.cycle.training.engine_options import DeviceAbilities, ResolvedOptions
from jupiterd.cycle.training.memory import MemoryNeed, memory_need, options_on
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.mlx.mlx_model import MlxModel, flat
from jupiterd.workers.train.mlx.mlx_optimizer import MlxOptimizer
from jupiterd.workers.train.mlx.ring import Ring
from jupiterd.workers.train.model_config import model_config
from jupiterd.workers.training_engine import (
    Gradients,
    MicroBatch,
    NamedTensor,
    Rows,
    TensorPiece,
    Tensors,
    Updating,
    digest,
)

CLIP_EPSILON = 1e-6
"""What torch adds to a gradient's norm before it divides by it."""

AHEAD_BYTES = 256 << 20
"""Bytes that MLX may always allocate ahead: tiny models need no more, and mustn't wait."""


class MlxTrainingEngine:
    """One rank on MLX."""

    partition: Partition | None = None
    base_partition: Partition | None = None

    def __init__(self, shape: ModelShape, plan: TrainPlan, end_token: int, ring: Ring) -> None:
        self.updating: Updating = nullcontext
        self._shape, self._plan = shape, plan
        self._ring = ring
        self.abilities = abilities()
        self.options = self._resolved(plan)
        self._keep_to(plan)
        self.config = model_config(shape, end_token)
        self.adapter = plan.options.adapter
        self._model = MlxModel(self.config, self._model_options, self.adapter)
        self.shapes = self._model.shapes
        self._optimizer = MlxOptimizer(plan, is_alone=self._is_alone)
        self._loss_and_gradients = mx.value_and_grad(self._loss)
        self.device = device()
        self.platform = f"mlx {version('mlx')} {platform.machine()} {mx.default_device()}"
        self.versions = {"mlx": version("mlx"), "mlx-lm": version("mlx-lm")}
        self.computed_s, self.peak_flops_per_s = 0.0, 0.0
        self.batch_sequences = plan.batch_sequences
        self.gpus = gpus()
        self.rank, self.world_size = ring.rank, ring.world_size
        self.name = "mlx/ring" if ring.world_size > 1 else "mlx"
        self._parameters: dict[str, mx.array] = {}
        self._shared: dict[str, mx.array] = {}
        """The mean of all ranks' gradients, between their sum and the step."""
        self._tried: Any = None
        """Gradients of passes that are thrown away."""
        self._prepare()
        self.load_weights(first_weights(self._model.shapes, plan.seed))

    def _prepare(self) -> None:
        """Do what must be done before the first weights are drawn."""

    def memory_used_bytes(self) -> int:
        """Return the bytes of GPU memory in use; 0 for a CPU."""
        return mx.get_active_memory() if self.gpus else 0

    def weights(self) -> Tensors:
        """Return a copy of the weights; tied ones appear once."""
        return _arrays(self._parameters)

    def each_weight(self) -> Iterator[NamedTensor]:
        """Yield the weights one by one."""
        yield from self.weights().items()

    def each_moment(self) -> Iterator[NamedTensor]:
        """Yield the optimizer's state one by one."""
        yield from self.moments().items()

    def own_pieces(self) -> Iterator[TensorPiece]:
        """Yield all weights and optimizer state."""
        for name, values in {**self.weights(), **self.moments()}.items():
            yield TensorPiece(name, 0, values.ravel())

    def own_weights(self) -> Iterator[TensorPiece]:
        """Yield all weights."""
        for name, values in self.weights().items():
            yield TensorPiece(name, 0, values.ravel())

    def load_own(self, pieces: Iterable[TensorPiece]) -> None:
        """Replace all weights."""
        found = {name: values.reshape(self.shapes[name]) for name, _, values in pieces}
        self.load_weights(found)

    def gather_numbers(
        self,
        own: NDArray[np.float32],
        bounds: Sequence[int],  # noqa: ARG002 - of one rank
    ) -> NDArray[np.float32]:
        """Return this rank's numbers: it holds all."""
        return own

    def load_base(self, weights: Tensors) -> None:
        """Fill the frozen model that an adapter is trained beside."""
        self._parameters |= self._model.load_base(weights)

    def base_digest(self) -> str:
        """Return a hash of the base's quantized matrices; empty where there are none."""
        return self._model.base_digest

    def load_weights(self, weights: Tensors) -> None:
        """Replace the weights by others of the same names and shapes."""
        self._replace({name: mx.array(weights[name]) for name in self._model.shapes})

    def exact_weights(self) -> Tensors:
        """Return a copy of the weights: they are never rounded to bf16."""
        return self.weights()

    def load_exact(self, weights: Tensors) -> None:
        """Replace the weights; none is rounded."""
        self.load_weights(weights)

    def moments(self) -> Tensors:
        """Return a copy of the optimizer's state: zeros before the first step."""
        none_yet = self._optimizer.none_yet(self._parameters)
        return _arrays({**none_yet, **self._optimizer.moments})

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Replace the optimizer's state by that after `step` steps."""
        self._optimizer.steps = step
        self._optimizer.moments = {name: mx.array(values) for name, values in moments.items()}

    @property
    def copies_beside(self) -> bool:
        """Say no: its arrays lie in the machine's own memory."""
        return False

    def copy_state(self, weights: Tensors, moments: Tensors) -> None:
        """Copy weights and optimizer state, which the last step has computed to the end."""
        for name, place in weights.items():
            np.copyto(place, np.array(self._parameters[name], copy=False))
        for name, place in moments.items():
            values = self._optimizer.moments.get(name)  # none of a parameter that isn't trained
            np.copyto(place, 0.0 if values is None else np.array(values, copy=False))

    def random_state(self) -> str:
        """Return nothing: no step draws random numbers."""
        return ""

    def load_random_state(self, state: str) -> None:
        """Ignore a state that torch wrote."""

    def begin(self, *, has_same_weights: bool) -> None:
        """Copy rank 0's weights to all ranks where they may differ: the copy takes a while."""
        if not has_same_weights and not self._ring.is_same(
            digest(self.weights()), "compares its weights"
        ):
            self._replace(self._ring.share_first(self._parameters))

    def take_micro_batch(self, sequences: int) -> None:
        """Let MLX allocate what micro batches of so many need before it waits."""
        plan = self._plan.model_copy(update={"micro_batch_sequences": sequences})
        self._keep_to(plan)

    def try_pass(self, batch: MicroBatch) -> float:
        """Compute a micro batch's gradient and throw it away; return how long it took, in s."""
        began_s = time.perf_counter()
        loss, more = self._pass(batch)
        self._tried = more if self._tried is None else tree_map(mx.add, self._tried, more)
        del more
        self._model.let_go()
        mx.eval(loss, self._tried)
        return time.perf_counter() - began_s

    def end_passes(self) -> None:
        """Throw away the gradients of passes that were tried."""
        self._tried = None

    def step(
        self, micro_batches: Sequence[MicroBatch], learning_rate: float
    ) -> tuple[float, float]:
        """Take one optimizer step; return this rank's part of the loss, and the gradient's norm."""
        share = self.sum_gradients(micro_batches)
        return share, self.take_step(learning_rate)

    def sum_gradients(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> float:
        """Store the mean of all ranks' gradients; return this rank's part of the loss."""
        began_s = time.perf_counter()
        share, gradients = self._accumulate(micro_batches)
        if not counts:
            share, gradients = 0.0, tree_map(mx.zeros_like, gradients)
            mx.eval(gradients)
        self.computed_s = time.perf_counter() - began_s
        self._shared = flat(self._ring.average(gradients))
        return share

    def take_step(self, learning_rate: float) -> float:
        """Update the weights by the stored gradients; return their norm."""
        shared, self._shared = self._shared, {}
        norm = self._length(shared)
        if not math.isfinite(norm):
            return math.nan
        scale = min(1.0, self._plan.clip_norm / (norm + CLIP_EPSILON))
        with self.updating():
            self._update(self._trained(shared), scale, learning_rate)
        return norm

    def _length(self, gradients: Mapping[str, mx.array]) -> float:
        return length(gradients)

    def _update(self, gradients: dict[str, mx.array], scale: float, rate: float) -> None:
        self._optimizer.step(self._parameters, gradients, scale, rate)

    def _trained(self, gradients: dict[str, mx.array]) -> dict[str, mx.array]:
        """Return the gradients of the trained parameters, and free all others."""
        for name in self._model.frozen:
            gradients.pop(name, None)
        return gradients

    def take_gradients(self) -> Gradients:
        """Remove and return the stored gradients."""
        shared, self._shared = self._shared, {}
        return shared

    def put_gradients(self, gradients: Gradients) -> None:
        """Store gradients that `take_gradients` returned."""
        self._shared = dict(gradients)

    def nats(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Return the summed cross-entropy in nats, without an update."""
        found = sum(
            float(self._model.loss(self._parameters, *self._arrays(batch)))
            for batch in micro_batches
        )
        self._model.let_go()
        return found

    def logits(self, tokens: NDArray[np.int64], weights: Tensors | None) -> NDArray[np.float32]:
        """Return the logits [vocabulary] after a sequence, in fp32, with these weights."""
        given = dict(self._parameters)
        if weights is not None:
            given = {name: mx.array(weights[name]) for name in self._model.shapes}
        return np.array(self._model.last_logits(given, self._ids(tokens[None])))

    def gather(self, values: Sequence[float]) -> Rows:
        """All-gather the values: [ranks][values], equal on all ranks."""
        return self._ring.gather(values)

    def _accumulate(self, micro_batches: Sequence[MicroBatch]) -> tuple[float, Any]:
        """Return this rank's part of the loss, and its gradients, computed to the end."""
        total, gradients = 0.0, None
        for batch in micro_batches:
            loss, more = self._pass(batch)
            gradients = more if gradients is None else tree_map(mx.add, gradients, more)
            del more  # each is let go of as soon as it is added
            self._model.let_go()
            mx.eval(loss, gradients)
            total += float(loss) / self.world_size
        return total, gradients

    def _pass(self, batch: MicroBatch) -> tuple[mx.array, Any]:
        """Return a micro batch's part of the loss, and its gradients, which aren't computed yet."""
        divisor = batch.divisor(self.batch_sequences)
        keys = None if batch.token_keys is None else mx.array(batch.token_keys)
        with self._model.leaving_out(keys):
            return self._loss_and_gradients(self._parameters, divisor, *self._arrays(batch))

    def _loss(
        self,
        parameters: Mapping[str, mx.array],
        divisor: int,
        *batch: Any,
    ) -> mx.array:
        """Return this micro batch's part of the global loss, times the number of ranks.

        divisor: targets that count in the global batch; batch: as the model's loss takes it
        """
        return self._model.loss(parameters, *batch, learns=True) * (self.world_size / divisor)

    def _arrays(
        self, batch: MicroBatch
    ) -> tuple[mx.array, mx.array, mx.array | None, mx.array | None]:
        documents = None if batch.documents is None else mx.array(batch.documents.astype(np.int32))
        counted = None if batch.counted is None else self._places(batch.counted)
        return self._ids(batch.inputs), self._ids(batch.targets), documents, counted

    def _places(self, counted: NDArray[np.bool_]) -> mx.array:
        return mx.array(np.flatnonzero(counted).astype(np.int32))

    def _ids(self, tokens: NDArray[np.int64]) -> mx.array:
        """MLX doesn't look whether a token is in the vocabulary; so we do."""
        if int(tokens.max()) >= self.config.vocab_size:
            raise CorruptArtifactError(
                f"the shards hold token {tokens.max()}, and the vocabulary has "
                f"{self.config.vocab_size}",
                "prepare the data set again, with the model's own tokenizer",
            )
        return mx.array(tokens.astype(np.int32))

    def _replace(self, parameters: Mapping[str, mx.array]) -> None:
        self._parameters = dict(parameters)
        mx.eval(self._parameters)

    def _resolved(self, plan: TrainPlan) -> ResolvedOptions:
        """Return how the plan is computed here."""
        return options_on(self.abilities, self._shape, plan)

    @property
    def _model_options(self) -> ResolvedOptions:
        """Return the options as the model is to have them."""
        return self.options

    @property
    def _is_alone(self) -> bool:
        """Say whether no other rank updates the same weights."""
        return self._ring.world_size == 1

    def _need(self, plan: TrainPlan) -> MemoryNeed:
        """Return what this rank needs for a plan."""
        checkpointing = self.options.gradient_checkpointing
        return memory_need(
            self._shape,
            plan,
            self.options.precision,
            gradient_checkpointing=checkpointing,
            device=self.abilities,
        )

    def _keep_to(self, plan: TrainPlan) -> None:
        """Let MLX wait for what it has begun before it takes more memory than is planned.

        It allocates ahead of what it computes, as much as there is to compute. Within the plan it
        may, and a little beyond: who is at the limit waits for every operation.
        """
        planned = self._need(plan).on_device
        mx.set_memory_limit(planned + planned // 10 + AHEAD_BYTES)


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


def abilities() -> DeviceAbilities:
    """Return what MLX's device can do: Metal and CUDA have bf16, the CPU emulates it."""
    info: Mapping[str, Any] = mx.device_info()
    memory = int(info.get("max_recommended_working_set_size") or info.get("memory_size") or 0)
    kind = device()
    shared = int(info.get("memory_size") or 0) if mx.metal.is_available() else 0
    return DeviceAbilities("mlx", kind, memory, has_bf16=kind == "gpu", ram_bytes=shared)


def gpus() -> tuple[str, ...]:
    """Return the name of the GPU, if MLX computes on one."""
    info: Mapping[str, Any] = mx.device_info()
    return (str(info.get("device_name", "gpu")),) if device() == "gpu" else ()


def _arrays(arrays: Mapping[str, mx.array]) -> Tensors:
    return {name: np.array(value, dtype=np.float32) for name, value in arrays.items()}
