"""A frozen torch model of which a rank holds its part, in what it is multiplied in.

Owns putting that into a model that has no memory yet, and reading it from files. Doesn't know
adapters, gradients or steps. Vectors, as norms have them, are small, and whole on every rank.
"""

from typing import Final

import torch
from torch import nn

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_layout import units_of
from jupiterd.workers.tensor_file import stretch_of
from jupiterd.workers.train.torch.partition.held_unit import HeldUnit
from jupiterd.workers.train.torch.partition.layer_hooks import LayerHooks
from jupiterd.workers.train.torch.partition.replaced_parameters import replace_parameters
from jupiterd.workers.train.torch.partition.unit_exchange import UnitExchange
from jupiterd.workers.train.torch.partition.unit_weights import UnitWeights
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_model import inner_model, named_parameters
from jupiterd.workers.training_engine import Tensors

_MATRIX: Final = 2


class CutBase:
    """The part of a frozen model that one rank holds."""

    def __init__(
        self,
        model: nn.Module,
        partition: Partition,
        group: ProcessGroup,
        device: str,
        kind: torch.dtype,
    ) -> None:
        """model: its parameters have no memory; they are replaced. kind: of matrices' numbers."""
        empty = named_parameters(model)
        shapes = {name: tuple(p.shape) for name, p in empty.items() if p.ndim >= _MATRIX}
        units = units_of(shapes)
        self._held = [
            HeldUnit(
                unit,
                shapes,
                unit.bounds(partition.parts),
                group.rank,
                device,
                is_cut=True,
                kind=kind,
            )
            for unit in units
        ]
        self._vectors = {
            name: nn.Parameter(torch.empty(p.shape, device=device), requires_grad=False)
            for name, p in empty.items()
            if name not in shapes
        }
        matrices = {name: p for held in self._held for name, p in held.parameters.items()}
        placed = {**self._vectors, **matrices}
        for parameter in placed.values():
            parameter.requires_grad = False
        replace_parameters(model, {id(p): placed[name] for name, p in empty.items()})
        self.exchange = UnitExchange(group)
        self.weights = UnitWeights(self._held, self.exchange)
        self.hooks = LayerHooks(inner_model(model), units, self.weights)

    @property
    def least_gathered_bytes(self) -> int:
        """Return how much memory the smallest unit takes that comes and goes."""
        return min(held.own.itemsize * held.unit.size for held in self._held)

    @torch.no_grad()
    def take(self, weights: Tensors) -> None:
        """Take over what is ours of a model's weights, and read no more of files."""
        for held in self._held:
            for name, piece in held.pieces.items():
                values = stretch_of(weights, name, piece.start, piece.end)
                held.take_piece(name, torch.from_numpy(values))
        for name, vector in self._vectors.items():
            vector.copy_(torch.from_numpy(weights[name]))
