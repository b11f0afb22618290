"""The training engine on MLX where a model is cut over the ranks of a ring.

Owns what `cycle.training.partition` says is done otherwise. Doesn't know files or the daemon. All
ranks call the same at the same time.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from jupiterd.cycle.training.engine_options import ResolvedOptions
from jupiterd.cycle.training.memory import MLX, MemoryNeed
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_layout import Unit
from jupiterd.cycle.training.partition.partition_memory import FP32_BYTES, need_of_part
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.errors import UsageError
from jupiterd.workers.memory_room import hand_back_large_blocks
from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
from jupiterd.workers.train.mlx.mlx_model import flat
from jupiterd.workers.train.mlx.partition.cut_weights import (
    CutWeights,
    PartitionedWeights,
    WholeWeights,
    gathered,
    pieces_of,
)
from jupiterd.workers.train.mlx.partition.held_stretches import HeldStretches, square_sum
from jupiterd.workers.train.mlx.partition.layer_passes import LayerPasses
from jupiterd.workers.train.mlx.partition.stretch_exchange import StretchExchange
from jupiterd.workers.train.mlx.ring import Ring
from jupiterd.workers.training_engine import (
    MOMENTS,
    MicroBatch,
    NamedTensor,
    TensorPiece,
    Tensors,
    moments_of,
)


class PartitionedMlxEngine(MlxTrainingEngine):
    """One rank on MLX that holds a part of a model."""

    def __init__(
        self, shape: ModelShape, plan: TrainPlan, end_token: int, ring: Ring, partition: Partition
    ) -> None:
        """Make the rank's part of the model.

        Raises:
            UsageError: what was asked for can't be cut, or MLX's model isn't made of layers.
        """
        check_partition(plan)
        self.partition: Partition | None = partition
        self._cut = partition
        self._exchange = StretchExchange(ring)
        super().__init__(shape, plan, end_token, ring)

    def _prepare(self) -> None:
        """Decide what the rank holds, before the first weights are drawn."""
        self._stretches = HeldStretches(self.shapes, self._cut, self.rank)
        if self._cut.cuts_gradients:  # and layers come and go
            hand_back_large_blocks(min(FP32_BYTES * unit.size for unit in self._stretches.units))
        kind = CutWeights if self._cut.cuts_weights else WholeWeights
        self._weights: PartitionedWeights = kind(self._stretches, self._exchange)
        self._passes: LayerPasses | None = None
        if self._cut.cuts_gradients:
            self._passes = LayerPasses(self._model, self._stretches.units)

    def each_weight(self) -> Iterator[NamedTensor]:
        """Yield the weights one by one."""
        return self._weights.each()

    def each_moment(self) -> Iterator[NamedTensor]:
        """Yield the optimizer's state one by one: zeros before the first step."""
        for name, shape in self.shapes.items():
            for kind in moments_of(name, len(shape), self._plan.options):
                named = f"{kind}.{name}"
                piece = self._optimizer.moments.get(named, self._stretches.none_of(name))
                yield named, gathered(self._stretches, self._exchange, name, piece)

    def own_pieces(self) -> Iterator[TensorPiece]:
        """Yield what this rank alone updates of the weights, and its optimizer state."""
        held, moments = self._weights.held(), self._optimizer.moments
        for name in filter(self._stretches.holds, self.shapes):
            kinds = moments_of(name, len(self.shapes[name]), self._plan.options)
            named = {f"{kind}.{name}": moments.get(f"{kind}.{name}") for kind in kinds}
            for each, values in {name: held[name], **named}.items():
                piece = self._stretches.none_of(name) if values is None else values
                start = self._stretches.cuts[name][self.rank]
                yield TensorPiece(each, start, np.array(piece).ravel())

    def own_weights(self) -> Iterator[TensorPiece]:
        """Yield what this rank alone updates of the weights."""
        for name, piece in self._weights.held().items():
            yield TensorPiece(name, self._stretches.cuts[name][self.rank], np.array(piece).ravel())

    def load_own(self, pieces: Iterable[TensorPiece]) -> None:
        """Replace this rank's stretches, and where all hold the weights whole, the others'."""
        cut = self._stretches
        self._weights.replace({name: cut.given(name, values) for name, _, values in pieces})
        self._parameters = self._weights.arrays

    def gather_numbers(
        self, own: NDArray[np.float32], bounds: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return the numbers of all ranks, one rank's behind the other's."""
        mine = mx.array(own)
        mx.eval(mine)
        return np.array(self._exchange.gather(mine, tuple(bounds)))

    def weights(self) -> Tensors:
        """Return a copy of the weights, of all ranks together."""
        return dict(self.each_weight())

    def moments(self) -> Tensors:
        """Return a copy of the optimizer's state, of all ranks together."""
        return dict(self.each_moment())

    def load_weights(self, weights: Tensors) -> None:
        """Keep this rank's stretches of other weights, which are asked for once each."""
        self._weights.load(weights)
        self._parameters = self._weights.arrays

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Keep this rank's stretches of the optimizer's state after `step` steps."""
        self._optimizer.steps = step
        self._optimizer.moments = {}
        for named in moments:
            kind, _, name = named.partition(".")
            if kind in MOMENTS and name in self.shapes:
                self._optimizer.moments |= pieces_of(self._stretches, moments, {named: name})

    def copy_state(self, weights: Tensors, moments: Tensors) -> None:
        """Copy weights and optimizer state, of all ranks together."""
        for places, each in ((weights, self.each_weight), (moments, self.each_moment)):
            for name, values in each() if places else ():
                np.copyto(places[name], values)

    def begin(self, *, has_same_weights: bool) -> None:
        """Copy rank 0's weights to all ranks, unless each number is one rank's alone anyway."""
        if not self._cut.cuts_weights:
            super().begin(has_same_weights=has_same_weights)

    def try_pass(self, batch: MicroBatch) -> float:
        """Compute a micro batch's gradient without other ranks; return how long it took, in s."""
        if self._passes is None:
            return super().try_pass(batch)
        began_s = time.perf_counter()
        of_unit = self._zeros if self._cut.cuts_weights else self._weights.of_unit
        outside, factor = of_unit(self._stretches.outside), 1 / batch.divisor(self.batch_sequences)
        self._passes.gradients(outside, of_unit, self._arrays(batch), factor, _forget)
        return time.perf_counter() - began_s

    def _zeros(self, unit: Unit) -> dict[str, mx.array]:
        return {name: mx.zeros(self.shapes[name]) for name in unit.sizes}

    def sum_gradients(self, micro_batches: Sequence[MicroBatch], *, counts: bool = True) -> float:
        """Store this rank's pieces of the summed gradient; return its part of the loss."""
        began_s, waited_s = time.perf_counter(), self._exchange.waited_s
        if self._passes is None:
            share = self._sum_at_the_end(micro_batches, counts=counts)
        else:
            share = self._sum_by_layers(self._passes, micro_batches, counts=counts)
        waited_s = self._exchange.waited_s - waited_s
        self.computed_s = time.perf_counter() - began_s - waited_s
        return share

    def _sum_at_the_end(self, micro_batches: Sequence[MicroBatch], *, counts: bool) -> float:
        share, gradients = self._accumulate(micro_batches)
        held = flat(gradients)
        del gradients
        for unit in self._stretches.units:
            found = {name: held.pop(name) for name in unit.sizes}
            if not counts:
                found = {name: mx.zeros_like(values) for name, values in found.items()}
            self._add(unit, found, 1 / self.world_size)
        return share if counts else 0.0

    def _sum_by_layers(
        self, passes: LayerPasses, micro_batches: Sequence[MicroBatch], *, counts: bool
    ) -> float:
        share, outside = 0.0, self._weights.of_unit(self._stretches.outside)
        for batch in micro_batches:
            factor = 1 / batch.divisor(self.batch_sequences) if counts else 0.0
            arrays = self._arrays(batch)
            share += passes.gradients(outside, self._weights.of_unit, arrays, factor, self._add)
        return share

    def _add(self, unit: Unit, gradients: dict[str, mx.array], factor: float = 1.0) -> None:
        """Add up a unit's gradients with those of the other ranks, at who holds each piece."""
        whole = self._stretches.whole(unit, gradients)
        summed = self._exchange.reduce(whole, self._stretches.bounds[unit.layer]) * factor
        del whole
        for name, values in self._stretches.pieces(unit, summed).items():
            before = self._shared.get(name)
            self._shared[name] = values if before is None else before + values
        mx.eval(self._shared)

    def nats(self, micro_batches: Sequence[MicroBatch]) -> float:
        """Return the summed cross-entropy in nats, without an update."""
        if self._passes is None or not self._cut.cuts_weights:
            return super().nats(micro_batches)
        outside = self._weights.of_unit(self._stretches.outside)
        of_unit = self._weights.of_unit
        batches = map(self._arrays, micro_batches)
        return sum(self._passes.loss(outside, of_unit, batch) for batch in batches)

    def logits(self, tokens: NDArray[np.int64], weights: Tensors | None) -> NDArray[np.float32]:
        """Return the logits [vocabulary] after a sequence, in fp32; its own weights by layers."""
        if weights is not None or self._passes is None or not self._cut.cuts_weights:
            return super().logits(tokens, weights)
        outside = self._weights.of_unit(self._stretches.outside)
        ids = self._ids(tokens[None])
        return np.array(self._passes.logits(outside, self._weights.of_unit, ids))

    def _length(self, gradients: Mapping[str, mx.array]) -> float:
        """Return the length of all ranks' pieces together.

        Ranks tell each other numbers in float32: each tells its own, and what that leaves out.
        """
        mine = square_sum(gradients)
        told = float(np.float32(mine))
        rest = mine - told if math.isfinite(told) else 0.0
        return math.sqrt(math.fsum(map(math.fsum, self._ring.gather([told, rest]))))

    def _update(self, gradients: dict[str, mx.array], scale: float, rate: float) -> None:
        held = self._weights.held()
        self._optimizer.step(held, gradients, scale, rate)
        self._weights.replace(held)

    def _replace(self, parameters: Mapping[str, mx.array]) -> None:
        self._parameters |= parameters
        mx.eval(self._parameters)

    def _resolved(self, plan: TrainPlan) -> ResolvedOptions:
        """Return how the plan is computed here: going by layers computes each of them twice."""
        found = super()._resolved(plan)
        return replace(found, gradient_checkpointing=True) if self._cut.cuts_gradients else found

    @property
    def _model_options(self) -> ResolvedOptions:
        """Return the options as the model is to have them: it hasn't to compute a layer twice."""
        if self._cut.cuts_gradients:
            return replace(self.options, gradient_checkpointing=False)
        return self.options

    @property
    def _is_alone(self) -> bool:
        return True

    def _need(self, plan: TrainPlan) -> MemoryNeed:
        share, ranks = self._cut.share(self._ring.rank), self._ring.world_size
        return need_of_part(super()._need(plan), self._shape, self._cut.stage, share, ranks, MLX)


def _forget(_unit: Unit, _gradients: dict[str, mx.array]) -> None:
    """Keep no gradients."""


def check_partition(plan: TrainPlan) -> None:
    """Make sure that what was asked for can be cut over ranks.

    Raises:
        UsageError: it can't.
    """
    if plan.options.adapter is not None:
        raise UsageError(
            "a model that is cut over machines can't be trained by an adapter yet",
            "--shard off, and --quantize 4bit where it is too large for a machine",
        )
    if plan.options.optimizer == "muon":
        raise UsageError(
            "a model that is cut over machines can't be trained with Muon",
            "--optimizer adamw, or --shard off",
        )
