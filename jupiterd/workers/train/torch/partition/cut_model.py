"""A torch model of which a rank holds its part: units, their weights and gradients.

Owns putting them into a model that has no memory yet, and reading and writing whole tensors one by
one. Doesn't know steps or optimizers.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_layout import units_of
from jupiterd.cycle.training.partition.partition_memory import FP32_BYTES
from jupiterd.workers.tensor_file import stretch_of
from jupiterd.workers.train.torch.partition.held_unit import HeldUnit
from jupiterd.workers.train.torch.partition.layer_hooks import LayerHooks
from jupiterd.workers.train.torch.partition.replaced_parameters import replace_parameters
from jupiterd.workers.train.torch.partition.unit_exchange import UnitExchange
from jupiterd.workers.train.torch.partition.unit_gradients import UnitGradients
from jupiterd.workers.train.torch.partition.unit_weights import UnitWeights, nothing_to_wait_for
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_model import inner_model, named_parameters
from jupiterd.workers.training_engine import NamedTensor, Tensors


class CutModel:
    """The part of a model that one rank holds."""

    def __init__(
        self, model: nn.Module, partition: Partition, group: ProcessGroup, device: str
    ) -> None:
        """model: its parameters have no memory; they are replaced."""
        empty = named_parameters(model)
        self.shapes = {name: tuple(parameter.shape) for name, parameter in empty.items()}
        units = units_of(self.shapes)
        self.exchange = UnitExchange(group)
        self._units = [
            HeldUnit(
                unit,
                self.shapes,
                unit.bounds(partition.parts),
                group.rank,
                device,
                is_cut=partition.cuts_weights,
            )
            for unit in units
        ]
        self._number_of = {name: n for n, unit in enumerate(units) for name in unit.sizes}
        parameters = {
            name: parameter for held in self._units for name, parameter in held.parameters.items()
        }
        for name, parameter in parameters.items():
            parameter.requires_grad_(empty[name].requires_grad)
        replace_parameters(model, {id(p): parameters[name] for name, p in empty.items()})
        self.parameters = parameters
        self.weights = UnitWeights(self._units, self.exchange)
        self.gradients = UnitGradients(
            self._units,
            parameters,
            self.shapes,
            self.exchange,
            are_cut=partition.cuts_gradients,
        )
        self.hooks = LayerHooks(inner_model(model), units, self.weights, self.gradients)
        self.pieces = self._pieces()

    @property
    def least_gathered_bytes(self) -> int:
        """Return how much memory the smallest unit takes that comes and goes."""
        return min(FP32_BYTES * held.unit.size for held in self._units)

    def _pieces(self) -> dict[str, nn.Parameter]:
        """Return what of each tensor is this rank's, with the place of its gradient: [numbers]."""
        found: dict[str, nn.Parameter] = {}
        for held, gradient in zip(self._units, self.gradients.own, strict=True):
            gradients = held.own_views(gradient)
            for name, view in held.own_views(held.own).items():
                is_trained = self.parameters[name].requires_grad
                found[name] = nn.Parameter(view, requires_grad=is_trained)
                if is_trained:
                    found[name].grad = gradients[name]
        return found

    @torch.no_grad()
    def draw(self, weights: Callable[[str], NDArray[np.float32]]) -> None:
        """Take over what is ours of weights, each of which is asked for once."""
        for name in self.shapes:
            held = self._units[self._number_of[name]]
            if not held.is_cut or name in held.pieces:
                held.take(name, torch.from_numpy(weights(name)))

    @torch.no_grad()
    def take(self, weights: Tensors) -> None:
        """Take over what is ours of weights, of which no more is read where they lie in files."""
        for name in self.shapes:
            held = self._units[self._number_of[name]]
            if not held.is_cut:
                held.take(name, torch.from_numpy(weights[name]))
            elif piece := held.pieces.get(name):
                found = stretch_of(weights, name, piece.start, piece.end)
                held.own_views(held.own)[name].copy_(torch.from_numpy(found))

    def start_of(self, name: str) -> int:
        """Return where our piece begins in a flattened tensor of which we have one."""
        return self._units[self._number_of[name]].pieces[name].start

    def own_part(self, name: str, kind: str, moments: Tensors) -> Tensor:
        """Return a copy of what is ours of KIND.NAME, of which something is: [numbers]."""
        piece = self._units[self._number_of[name]].pieces[name]
        found = stretch_of(moments, f"{kind}.{name}", piece.start, piece.end)
        return torch.from_numpy(found).clone()

    def each_weight(self) -> Iterator[NamedTensor]:
        """Yield whole weights, gathered by all ranks together."""
        left = Counter(self._number_of.values())
        try:
            for name, number in self._in_order():
                self.weights.ensure(number)
                yield name, _array(self.parameters[name])
                left[number] -= 1
                if not left[number]:
                    self.weights.release(number)
        finally:
            self.weights.release_all()

    def each_of(self, kinds: Mapping[str, Mapping[str, Tensor]]) -> Iterator[NamedTensor]:
        """Yield whole tensors of other kinds, of which each rank gives its pieces: KIND.NAME.

        kinds: kind -> name of a weight -> the piece of this rank
        """
        left = Counter(self._number_of.values())
        here: dict[tuple[str, int], Mapping[str, Tensor]] = {}
        for name, number in self._in_order():
            for kind, pieces in kinds.items():
                if (kind, number) not in here:
                    here[kind, number] = self._whole(number, pieces)
                yield f"{kind}.{name}", _array(here[kind, number][name])
            left[number] -= 1
            if not left[number]:
                for kind in kinds:
                    del here[kind, number]

    def _whole(self, number: int, pieces: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return whole tensors of one unit."""
        held = self._units[number]
        own = torch.empty_like(held.own)
        for name, view in held.own_views(own).items():
            view.copy_(pieces[name])
        return held.views(self.weights.gathered(number, own), self.shapes)

    def given(self, weights: Tensors) -> Callable[[HeldUnit], Callable[[], None]]:
        """Return what fills units with these weights."""

        def fill(held: HeldUnit) -> Callable[[], None]:
            for name, view in held.views(held.whole, self.shapes).items():
                view.copy_(torch.from_numpy(weights[name]))
            return nothing_to_wait_for

        return fill

    def _in_order(self) -> Iterator[tuple[str, int]]:
        return ((name, self._number_of[name]) for name in self.shapes)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    """Return a copy: torch lets nobody take memory away that an array of numpy shares."""
    return tensor.detach().to("cpu", copy=True).numpy()
