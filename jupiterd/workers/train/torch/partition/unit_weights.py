"""The weights of units while they are needed: gathered from all ranks, and let go of after.

Owns which units are here, and which are on their way. Doesn't know in which order a model computes
(`layer_hooks`). Where weights aren't cut, all are here always.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from jupiterd.workers.train.torch.partition.held_unit import HeldUnit
from jupiterd.workers.train.torch.partition.unit_exchange import UnitExchange

Fill = Callable[[HeldUnit], Callable[[], None]]
"""Begins to fill a unit's whole vector; what it returns waits for the end of it."""


class UnitWeights:
    """The units of one model, by their numbers in its order."""

    def __init__(self, units: Sequence[HeldUnit], exchange: UnitExchange) -> None:
        self._units = units
        self._exchange = exchange
        self._fill: Fill = self._gathered
        self._here: set[int] = {n for n, held in enumerate(units) if not held.is_cut}
        self._coming: dict[int, Callable[[], None]] = {}

    @torch.no_grad()
    def ask(self, number: int) -> None:
        """Let a unit's weights come, if there is such a unit, and they aren't here."""
        if number in self._here or number in self._coming or number >= len(self._units):
            return
        self._units[number].make_room()
        self._coming[number] = self._fill(self._units[number])

    def ensure(self, number: int) -> None:
        """Return when a unit's weights are here."""
        self.ask(number)
        if (wait := self._coming.pop(number, None)) is not None:
            wait()
            self._here.add(number)

    def release(self, number: int) -> None:
        """Let go of a unit's weights, where they are cut."""
        if not self._units[number].is_cut:
            return
        if (wait := self._coming.pop(number, None)) is not None:
            wait()
        self._here.discard(number)
        self._units[number].release()

    def release_all(self) -> None:
        """Let go of all."""
        for number in range(len(self._units)):
            self.release(number)

    def share(self) -> None:
        """Bring each owner's weights to all ranks, where all hold them whole."""
        whole = [held for held in self._units if not held.is_cut]
        for wait in [self._gathered(held) for held in whole]:
            wait()

    def gathered(self, number: int, own: Tensor) -> Tensor:
        """Return a whole vector of which each rank gives its stretch: float32[unit]."""
        held = self._units[number]
        whole = torch.empty(held.unit.size, device=own.device)
        whole[held.start : held.end].copy_(own)
        self._exchange.gather(held.bounds, whole, own).wait()
        return whole

    @contextmanager
    def filled_by(self, fill: Fill) -> Generator[None]:
        """Take weights from elsewhere meanwhile; other ranks hear nothing of it."""
        self.release_all()
        self._fill = fill
        try:
            yield
        finally:
            self.release_all()
            self._fill = self._gathered

    def _gathered(self, held: HeldUnit) -> Callable[[], None]:
        return self._exchange.gather(held.bounds, held.whole, held.own).wait


def with_zeros(held: HeldUnit) -> Callable[[], None]:
    """Fill a unit with zeros: what is computed takes as long, and as much memory."""
    held.whole.zero_()
    return nothing_to_wait_for


def nothing_to_wait_for() -> None:
    """Wait for nothing."""
