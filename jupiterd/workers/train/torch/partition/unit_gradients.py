"""The gradients of units: where they are collected, and when they go to their owners.

Owns that memory. Doesn't know in which order a model computes (`layer_hooks`).

Stage 1: each rank keeps whole gradients, and in the last pass they go to their owners.
Stage 2 and 3: in each pass they go there at once, from memory that the next layer's take over.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from jupiterd.workers.train.torch.partition.held_unit import HeldUnit, Shapes
from jupiterd.workers.train.torch.partition.unit_exchange import Summing, UnitExchange

OPEN_SUMS: Final = 1
"""How many units' gradients are on their way while another's are computed."""


class UnitGradients:
    """The gradients of one model's units, by their numbers in its order."""

    def __init__(
        self,
        units: Sequence[HeldUnit],
        parameters: Mapping[str, nn.Parameter],
        shapes: Shapes,
        exchange: UnitExchange,
        *,
        are_cut: bool,
    ) -> None:
        self._units, self._exchange, self.are_cut = units, exchange, are_cut
        self._parameters = parameters
        self._flat: dict[int, Tensor] = {}
        """Whole gradients, by unit: of all units, or of those that are being computed."""
        self._filled: set[str] = set()
        """Parameters whose gradient is there."""
        self._free: list[Tensor] = []
        self._sums: list[tuple[int, Summing]] = []
        self.own: list[Tensor] = []
        """This rank's stretch of each unit's: sums over all ranks, once they are there."""
        for number, held in enumerate(units):
            self._hold(number, held, shapes)

    def send(self, number: int) -> None:
        """Let a unit's gradients go to their owners; the ones before it arrive."""
        held = self._units[number]
        flat = self._whole(number)
        if self.are_cut:
            for name in held.unit.sizes.keys() - self._filled:
                held_at = held.places[name]
                flat[held_at : held_at + held.unit.sizes[name]].zero_()
        self._filled -= held.unit.sizes.keys()
        self._sums.append((number, self._exchange.sum_up(held.bounds, flat)))
        while len(self._sums) > OPEN_SUMS:
            self._receive()

    def drop(self, number: int) -> None:
        """Forget a unit's gradients, where they aren't kept whole until they are sent."""
        if self.are_cut and number in self._flat:
            self._filled -= self._units[number].unit.sizes.keys()
            self._let_go(number)

    def receive_all(self) -> None:
        """Return when all sums are there."""
        while self._sums:
            self._receive()

    def forget(self) -> None:
        """Begin a step anew."""
        for gradient in self.own if self.are_cut else self._flat.values():
            gradient.zero_()

    def _hold(self, number: int, held: HeldUnit, shapes: Shapes) -> None:
        if self.are_cut:
            self.own.append(torch.zeros_like(held.own))
            for name in held.unit.sizes:
                self._collect(number, name)
            return
        self._flat[number] = flat = torch.zeros(held.unit.size, device=held.own.device)
        self.own.append(flat[held.start : held.end])
        for name, view in held.views(flat, shapes).items():
            if self._parameters[name].requires_grad:
                self._parameters[name].grad = view

    def _collect(self, number: int, name: str) -> None:
        """Put a parameter's gradient to its unit's as soon as it is there."""
        place = self._units[number].places[name]

        def collect(parameter: Any) -> None:  # noqa: ANN401 - torch's
            gradient = parameter.grad
            self._whole(number)[place : place + gradient.numel()].copy_(gradient.flatten())
            self._filled.add(name)
            parameter.grad = None

        parameter = self._parameters[name]
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(collect)

    def _whole(self, number: int) -> Tensor:
        if number not in self._flat:
            self._flat[number] = self._room(self._units[number])
        return self._flat[number]

    def _room(self, held: HeldUnit) -> Tensor:
        for place, room in enumerate(self._free):
            if len(room) == held.unit.size:
                return self._free.pop(place)
        return torch.empty(held.unit.size, device=held.own.device)

    def _receive(self) -> None:
        """Add the first sum that is on its way to what is there."""
        number, summing = self._sums.pop(0)
        total, own = summing.total(), self.own[number]
        if self.are_cut:
            own.add_(total)
            self._let_go(number)
        elif total.data_ptr() != own.data_ptr():
            own.copy_(total)
        self._exchange.give_back(summing)

    def _let_go(self, number: int) -> None:
        """Keep a layer's memory for the next one; what is outside of layers comes once a pass."""
        flat = self._flat.pop(number)
        if number and len(self._free) <= OPEN_SUMS:
            self._free.append(flat)
