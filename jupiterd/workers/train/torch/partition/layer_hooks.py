"""When a model's units are gathered, let go of and summed up, while it computes.

Owns the order, which is the same on all ranks whatever their gradients' hooks do: forwards layer by
layer, and backwards at the moment when the gradient of a layer's output is there. By then all
layers above have theirs. Doesn't know messages or memory.

A layer's weights are asked for while the layer before it computes. Where a layer's insides are
computed again for the backward pass, it is still here.
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from jupiterd.cycle.training.partition.partition_layout import OUTSIDE, Unit
from jupiterd.workers.train.torch.partition.unit_gradients import UnitGradients
from jupiterd.workers.train.torch.partition.unit_weights import UnitWeights

OUTSIDE_NUMBER = 0
"""What is outside of layers is the first unit."""


class LayerHooks:
    """What happens around the layers of one model."""

    def __init__(
        self,
        model: nn.Module,
        units: Sequence[Unit],
        weights: UnitWeights,
        gradients: UnitGradients | None = None,
    ) -> None:
        """gradients: None where all units are frozen."""
        assert units[0].layer == OUTSIDE  # noqa: S101 - an embedding is in every model
        self._weights, self._gradients = weights, gradients
        self._count = len(units)
        self._is_backward = False
        """From the moment when the last layer's output has its gradient."""
        self._sums = False
        self._unsent = 0
        """Units above it have sent their gradients in this pass."""
        self._lowest = 0
        """The first layer through which gradients go in this pass; 0: none is computed yet."""
        self._handles: list[RemovableHandle] = []
        for number, path in _layers_of(units):
            self._watch(number, model.get_submodule(path))

    @contextmanager
    def passing(self) -> Generator[None]:
        """Have what is outside of layers here for some passes."""
        self._weights.ask(OUTSIDE_NUMBER)
        self._weights.ask(OUTSIDE_NUMBER + 1)
        self._weights.ensure(OUTSIDE_NUMBER)
        try:
            yield
        finally:
            self._weights.release_all()

    def begin(self, *, sums: bool) -> None:
        """Begin a pass; sums: its gradients go to their owners."""
        self._is_backward, self._sums, self._unsent = False, sums, self._count
        self._lowest = 0

    def end(self) -> None:
        """End a pass: send what wasn't sent yet, and return when all sums are there."""
        self._leave(OUTSIDE_NUMBER)
        self._is_backward = False
        if self._gradients is not None:
            self._gradients.receive_all()

    def _watch(self, number: int, layer: nn.Module) -> None:
        def before(*_: Any) -> None:
            self._weights.ensure(number)
            if not self._is_backward:
                self._weights.ask(number + 1)

        def after(_layer: nn.Module, _given: Any, found: Any) -> None:  # noqa: ANN401 - torch's
            if not self._is_backward:
                self._computed(number, found)

        layer.register_forward_pre_hook(before)
        layer.register_forward_hook(after)

    def _computed(self, number: int, found: Any) -> None:  # noqa: ANN401 - a layer's
        """Let go of a layer; the last one's backward pass comes at once."""
        learnt = [tensor for tensor in _tensors(found) if tensor.requires_grad]
        for tensor in learnt:
            tensor.register_hook(self._reaching(number))
        self._lowest = self._lowest or (number if learnt else 0)
        if not learnt or number < self._count - 1:
            self._weights.release(number)

    def _reaching(self, number: int) -> Callable[[Tensor], None]:
        def reach(_gradient: Tensor) -> None:
            self._is_backward = True
            self._leave(number + 1)
            self._weights.ensure(number)
            if number > self._lowest:
                self._weights.ask(number - 1)

        return reach

    def _leave(self, lowest: int) -> None:
        """Send the gradients of all units from this one on, and let go of their weights."""
        for number in range(self._unsent - 1, lowest - 1, -1):
            if self._gradients is not None:
                (self._gradients.send if self._sums else self._gradients.drop)(number)
            if number != OUTSIDE_NUMBER:
                self._weights.release(number)
        self._unsent = min(self._unsent, lowest)


def _layers_of(units: Sequence[Unit]) -> Iterator[tuple[int, str]]:
    """Yield the number of a unit and the path of a module that holds tensors of it."""
    for number, unit in enumerate(units):
        if unit.layer == OUTSIDE:
            continue
        place = re.compile(rf"^(.*?\b(?:layers|h|blocks)\.{unit.layer})\.")
        found = [match[1] for name in unit.sizes if (match := place.search(name))]
        yield from ((number, path) for path in dict.fromkeys(found))


def _tensors(found: Any) -> Iterator[Tensor]:  # noqa: ANN401 - a layer's
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, (tuple, list)):
        for each in found:
            yield from _tensors(each)
