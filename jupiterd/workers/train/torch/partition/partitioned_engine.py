"""The training engine on torch where a model is cut over the ranks of a gang.

Owns what is done otherwise than by an engine that holds everything: `TorchEngine`. Doesn't know
messages (`unit_exchange`) or their order (`layer_hooks`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.memory_room import hand_back_large_blocks
from jupiterd.workers.train.first_weights import first_weights
from jupiterd.workers.train.torch.device import abilities
from jupiterd.workers.train.torch.gradient_clip import length_of, shorten
from jupiterd.workers.train.torch.partition.cut_model import CutModel
from jupiterd.workers.train.torch.partition.cut_options import cut_options
from jupiterd.workers.train.torch.partition.gathering_engine import GatheringTorchEngine
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_dropout import TokenKeys
from jupiterd.workers.train.torch.torch_model import (
    LastLogits,
    learn_used_rows,
    model_without_memory,
    without_flash,
)
from jupiterd.workers.train.torch.torch_optimizer import TorchOptimizer
from jupiterd.workers.training_engine import (
    MOMENTS,
    NamedTensor,
    TensorPiece,
    Tensors,
)

BLOCK = 4096
"""Numbers whose squares are added up in fp32; see `length_of`."""


class PartitionedTorchEngine(GatheringTorchEngine):
    """One rank's part of a model on torch."""

    def __init__(
        self,
        shape: ModelShape,
        plan: TrainPlan,
        end_token: int,
        group: ProcessGroup,
        device: str,
        partition: Partition,
    ) -> None:
        self._shape, self._plan, self.partition = shape, plan, partition
        self.abilities = abilities(device)
        self.options = cut_options(self.abilities, shape, plan, partition, group.rank)
        self.adapter, self._keys = None, TokenKeys()
        self._model = model_without_memory(shape, end_token, self.options)
        self._cut = CutModel(self._model, partition, group, device)
        self._parameters = self._all = self._cut.pieces
        nn.Module.to(self._model, device)  # what isn't trained, as angles of positions
        if device == "cpu":
            learn_used_rows(self._model)
            if partition.cuts_weights or self.options.gradient_checkpointing:
                hand_back_large_blocks(self._cut.least_gathered_bytes)
        if partition.cuts_weights:
            torch.set_autocast_cache_enabled(False)  # it would hold a copy of every layer
        dimensions = {name: len(sizes) for name, sizes in self._cut.shapes.items()}
        self._optimizer = TorchOptimizer(self._parameters, plan, dimensions)
        self._attach(group, device)
        self._gather_by(
            self._cut.hooks,
            self._cut.weights,
            self._cut.exchange,
            sums_each_pass=partition.cuts_gradients,
            recasts=partition.cuts_weights,
        )
        self._cut.draw(lambda name: first_weights({name: self.shapes[name]}, plan.seed)[name])

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return name -> shape of the trained weights, whole."""
        return self._cut.shapes

    def weights(self) -> Tensors:
        """Return the whole weights."""
        return dict(self.each_weight())

    def each_weight(self) -> Iterator[NamedTensor]:
        """Yield the whole weights one by one."""
        return self._cut.each_weight()

    def load_weights(self, weights: Tensors) -> None:
        """Keep what is ours of weights of the same names and shapes."""
        self._cut.take(weights)

    def exact_weights(self) -> Tensors:
        """Return the whole weights: none were rounded."""
        return self.weights()

    def load_exact(self, weights: Tensors) -> None:
        """Replace the weights."""
        self.load_weights(weights)

    def moments(self) -> Tensors:
        """Return the optimizer's whole state; zeros before the first step."""
        return dict(self.each_moment())

    def each_moment(self) -> Iterator[NamedTensor]:
        """Yield the optimizer's whole state one by one."""
        found = self._optimizer.moments()
        return self._cut.each_of(
            {kind: {n: found[f"{kind}.{n}"] for n in self._parameters} for kind in MOMENTS}
        )

    def own_pieces(self) -> Iterator[TensorPiece]:
        """Yield what is ours of weights and optimizer state."""
        found = self._optimizer.moments()
        for name, piece in self._parameters.items():
            start = self._cut.start_of(name)
            yield TensorPiece(name, start, _numbers(piece))
            for kind in MOMENTS:
                full = f"{kind}.{name}"
                yield TensorPiece(full, start, _numbers(found[full]))

    def own_weights(self) -> Iterator[TensorPiece]:
        """Yield what is ours of the weights."""
        for name, piece in self._parameters.items():
            yield TensorPiece(name, self._cut.start_of(name), _numbers(piece))

    @torch.no_grad()
    def load_own(self, pieces: Iterable[TensorPiece]) -> None:
        """Replace our stretches, and where all hold the weights whole, those of the others."""
        for name, _, values in pieces:
            self._parameters[name].copy_(torch.from_numpy(values))
        self._cut.weights.share()

    def gather_numbers(
        self, own: NDArray[np.float32], bounds: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return the numbers of all ranks, one rank's behind the other's."""
        return self._cut.exchange.gathered(bounds, own, self.device)

    def load_moments(self, moments: Tensors, step: int) -> None:
        """Keep what is ours of the optimizer's state after `step` steps."""
        ours = {
            f"{kind}.{name}": self._cut.own_part(name, kind, moments)
            for name in self._parameters
            for kind in MOMENTS
        }
        self._optimizer.load(ours, step)

    @property
    def copies_beside(self) -> bool:
        """Say no: all ranks have to take part in it."""
        return False

    def copy_state(self, weights: Tensors, moments: Tensors) -> None:
        """Copy the whole weights and the optimizer's state into given arrays."""
        for places, found in ((weights, self.each_weight()), (moments, self.each_moment())):
            for name, values in found:
                places[name][...] = values

    def begin(self, *, has_same_weights: bool) -> None:
        """Give all ranks the weights of their owners, where all hold them whole."""
        if not has_same_weights:
            self._cut.weights.share()

    @torch.no_grad()
    def logits(self, tokens: NDArray[np.int64], weights: Tensors | None) -> NDArray[np.float32]:
        """Return the logits [vocabulary] after a sequence; weights that are cut come by units."""
        if not self._cuts_weights:
            return super().logits(tokens, weights)
        exchange = self._cut.weights
        filled = nullcontext() if weights is None else exchange.filled_by(self._cut.given(weights))
        with without_flash(self._model), filled, self._cut.hooks.passing():
            self._cut.hooks.begin(sums=False)
            return LastLogits(self._model)(self._ids(tokens[None])).cpu().numpy()

    def _reserve_moments(self) -> None:
        """Reserve what our part of the optimizer's state will take."""
        if self.gpus and self._moments_to_come is None and not self._optimizer.steps:
            count = sum(len(MOMENTS) * piece.numel() for piece in self._parameters.values())
            self._moments_to_come = torch.empty(count, device=self.device)

    def _update(self, loss: Tensor, learning_rate: float) -> tuple[float, float]:
        """Update our stretches, and bring them to all who hold weights whole."""
        norm = self._norm()
        if math.isfinite(norm):
            if own := self._own_gradients():
                shorten(own, norm, 1.0, self._plan.clip_norm)
            with self.updating():
                self._optimizer.step(learning_rate)
                self._cut.weights.share()
        self._forget_gradients()
        return float(loss), norm if math.isfinite(norm) else math.nan

    def _norm(self) -> float:
        """Return the length of the whole gradient, equal on all ranks."""
        own = [length_of(_rows(stretch)) for stretch in self._own_gradients()]
        rows = self.gather([float(sum(length.square() for length in own))])
        return math.sqrt(sum(square for (square,) in rows))

    def _own_gradients(self) -> list[Tensor]:
        """Return our stretches of the gradients, of the units of which we have one: [numbers]."""
        return [stretch for stretch in self._cut.gradients.own if len(stretch)]

    def _forget_gradients(self) -> None:
        self._cut.gradients.forget()

    @property
    def _cuts_weights(self) -> bool:
        return self.partition is not None and self.partition.cuts_weights


def _numbers(piece: Tensor) -> NDArray[np.float32]:
    """Return a piece as it lies in the machine's memory, or a copy of what a GPU has."""
    return piece.detach().cpu().numpy()


def _rows(stretch: Tensor) -> list[Tensor]:
    """Return a stretch in pieces: [rows, BLOCK], and what is left, [numbers]."""
    whole = len(stretch) // BLOCK * BLOCK
    parts = stretch[:whole].view(-1, BLOCK), stretch[whole:]
    return [part for part in parts if part.numel()]
