"""A pass through a model of mlx-lm, layer by layer, forwards and backwards.

Owns when a layer has its weights, and what is kept between both ways: what goes into each layer,
and no more, so that its insides are computed twice. MLX's own backward pass has the gradients of
all layers at the end; here a layer's leave before the next one's are computed. Doesn't know where
weights come from, nor where gradients go.

The model's own code calls its layers, so masks, positions and windows are its own, too. It is
called three times: for the whole way forwards, and for the gradients of what is before the layers
and behind them, when all layers just return what they are given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten

from jupiterd.cycle.training.partition.partition_layout import OUTSIDE, Unit
from jupiterd.errors import UsageError
from jupiterd.workers.train.mlx.mlx_model import MlxModel

Tensors = dict[str, mx.array]
Batch = tuple[mx.array, mx.array, mx.array | None, mx.array | None]
"""Inputs, targets, documents and counted places, as the model's loss takes them."""

OfUnit = Callable[[Unit], Tensors]
"""Returns the weights of a unit, whole."""

Leave = Callable[[Unit, Tensors], None]
"""Takes the gradients of a unit, whole and computed; it may empty the mapping."""


@dataclass(frozen=True)
class LayerCall:
    """A call of one layer, as the model's own code makes it."""

    number: int
    layer: Any
    kind: Any
    """The layer's class, whose call is its own."""
    given: tuple[Any, ...]
    named: Mapping[str, Any]

    @property
    def hidden(self) -> mx.array:
        """Return what goes into the layer."""
        return self.given[0]

    def output(self, hidden: mx.array) -> Any:  # noqa: ANN401 - an array, where all is well
        """Return what the layer makes of hidden states."""
        return self.kind.__call__(self.layer, hidden, *self.given[1:], **self.named)


class LayerPasses:
    """The passes of one model."""

    def __init__(self, model: MlxModel, units: Sequence[Unit]) -> None:
        """Take over the model's layers.

        Raises:
            UsageError: they aren't called one after the other, each with what the one before made.
        """
        self._model, self._module = model, model.module
        self._units = {unit.layer: unit for unit in units}
        self._layers: list[Any] = list(model.module.inner.layers)
        self._places: dict[int, Sequence[str]] = {}
        self._answer: Callable[[LayerCall], Any] | None = None
        """What a layer returns; None: what it computes."""
        self._is_exact = False
        """Weights are taken in fp32, whatever training computes in."""
        for number, layer in enumerate(self._layers):
            layer.__class__ = self._watched(type(layer), number)
        self._check()

    def loss(self, outside: Tensors, of_unit: OfUnit, batch: Batch) -> float:
        """Return the sum of the cross-entropies, in nats; outside: weights outside of layers."""
        inputs, targets, documents, counted = batch
        with self._model.documents_apart(documents):
            last = self._forward(outside, of_unit, inputs)[-1]
            self._put(self._units[OUTSIDE], outside)
            found = self._model.loss_after(self._behind(inputs, last), targets, counted)
            mx.eval(found)
        self._let_go(self._units[OUTSIDE])
        return float(found)

    def logits(self, outside: Tensors, of_unit: OfUnit, inputs: mx.array) -> mx.array:
        """Return what follows a sequence, [vocabulary], in fp32; inputs: int32[1, tokens]."""
        self._is_exact = True
        try:
            last = self._forward(outside, of_unit, inputs)[-1]
            self._put(self._units[OUTSIDE], outside)
            found = self._model.logits_after(self._behind(inputs, last))
            mx.eval(found)
        finally:
            self._is_exact = False
        self._let_go(self._units[OUTSIDE])
        return found

    def gradients(
        self, outside: Tensors, of_unit: OfUnit, batch: Batch, factor: float, leave: Leave
    ) -> float:
        """Return the loss times a factor; the gradients of each unit leave as they are computed.

        outside: the weights outside of layers
        """
        inputs, targets, documents, counted = batch
        with self._model.documents_apart(documents):
            calls = list[LayerCall]()
            last = self._forward(outside, of_unit, inputs, calls)[-1]
            loss, (found, error) = self._from_behind(
                outside, last, inputs, targets, counted, factor
            )
            del last
            while calls:
                error = self._through(calls.pop(), of_unit, error, leave)
            self._before(outside, inputs, error, found)
        leave(self._units[OUTSIDE], found)
        return loss

    def _forward(
        self,
        outside: Tensors,
        of_unit: OfUnit,
        inputs: mx.array,
        calls: list[LayerCall] | None = None,
    ) -> list[mx.array]:
        """Return what the last layer made, computed; calls: where all calls are noted."""
        made = list[mx.array]()

        def computed(call: LayerCall) -> mx.array:
            mx.eval(call.hidden)
            made.clear()
            unit = self._units[call.number]
            self._put(unit, of_unit(unit))
            made.append(call.output(call.hidden))
            mx.eval(made)
            self._let_go(unit)
            if calls is not None:
                calls.append(call)
            return made[0]

        self._put(self._units[OUTSIDE], outside)
        self._called(inputs, computed)
        self._let_go(self._units[OUTSIDE])
        return made

    def _from_behind(
        self,
        outside: Tensors,
        last: mx.array,
        inputs: mx.array,
        targets: mx.array,
        counted: mx.array | None,
        factor: float,
    ) -> tuple[float, tuple[Tensors, mx.array]]:
        """Return the loss, and its gradients by what is outside of layers, and by `last`."""

        def loss(outside: Tensors, last: mx.array) -> mx.array:
            self._put(self._units[OUTSIDE], outside)
            hidden = self._behind(inputs, last)
            return self._model.loss_after(hidden, targets, counted, learns=True) * factor

        found, gradients = mx.value_and_grad(loss, argnums=(0, 1))(outside, last)
        self._let_go(self._units[OUTSIDE])
        mx.eval(found, gradients)
        return float(found), gradients

    def _through(self, call: LayerCall, of_unit: OfUnit, error: mx.array, leave: Leave) -> mx.array:
        """Let a layer's gradients leave; return that of what goes into it."""
        unit = self._units[call.number]
        names = list(unit.sizes)

        def made(hidden: mx.array, *tensors: mx.array) -> list[mx.array]:
            self._put(unit, dict(zip(names, tensors, strict=True)))
            return [call.output(hidden)]

        weights = of_unit(unit)
        inputs = [call.hidden, *(weights[name] for name in names)]
        before, *found = mx.vjp(made, inputs, [error])[1]
        self._let_go(unit)
        mx.eval(before, found)
        gradients = dict(zip(names, found, strict=True))
        del weights, inputs, found
        leave(unit, gradients)
        return before

    def _before(self, outside: Tensors, inputs: mx.array, error: mx.array, found: Tensors) -> None:
        """Add the gradients by way of what is before the layers."""
        names = list(outside)

        def entered(*tensors: mx.array) -> list[mx.array]:
            self._put(self._units[OUTSIDE], dict(zip(names, tensors, strict=True)))
            seen = list[mx.array]()

            def noted(call: LayerCall) -> mx.array:
                if call.number == 0:
                    seen.append(call.hidden)
                return call.hidden

            self._called(inputs, noted)
            return seen

        more = mx.vjp(entered, [outside[name] for name in names], [error])[1]
        self._let_go(self._units[OUTSIDE])
        for name in names:
            found[name] = found[name] + more.pop(0)
            mx.eval(found[name])  # one by one: most of them are zeros

    def _behind(self, inputs: mx.array, last: mx.array) -> mx.array:
        """Return the last hidden states, out of what the last layer made."""
        end = len(self._layers) - 1
        return self._called(inputs, lambda call: last if call.number == end else call.hidden)

    def _called(self, inputs: mx.array, answer: Callable[[LayerCall], Any]) -> mx.array:
        """Return the last hidden states, where layers return what is answered for them."""
        self._answer = answer
        try:
            return self._model.hidden(inputs)
        finally:
            self._answer = None

    def _watched(self, kind: type[nn.Module], number: int) -> Any:  # noqa: ANN401 - a class
        passes = self

        def call(self: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the layer's own
            found = LayerCall(number, self, kind, given, named)
            if passes._answer is None:
                return kind.__call__(self, *given, **named)
            return passes._answer(found)

        return type(kind.__name__, (kind,), {"__call__": call})

    def _put(self, unit: Unit, weights: Tensors) -> None:
        given = weights if self._is_exact else self._model.in_precision(weights)
        self._places[unit.layer] = self._module.update_some(given)

    def _let_go(self, unit: Unit) -> None:
        self._module.let_go_of(self._places[unit.layer])

    def _check(self) -> None:
        """Call the model without computing anything, and look at how it calls its layers."""
        numbers, made = list[int](), list[Any]()

        def followed(call: LayerCall) -> Any:  # noqa: ANN401 - whatever the layer returns
            is_next = call.given and (not made or call.hidden is made[-1])
            numbers.append(call.number if is_next else -1)
            made.append(call.kind.__call__(call.layer, *call.given, **call.named))
            return made[-1]

        are_own = all(self._has_own_places(unit) for unit in self._units.values())
        if are_own:
            self._called(mx.zeros((1, 2), mx.int32), followed)
            for unit in self._units.values():
                self._let_go(unit)
        follow = numbers == list(range(len(self._layers)))
        if not follow or not all(isinstance(each, mx.array) for each in made):
            raise UsageError(
                "MLX's model isn't made of layers that follow one another, so it can't be cut over "
                "machines",
                "--engine torch, or --shard off",
            )

    def _has_own_places(self, unit: Unit) -> bool:
        """Give a unit weights, and say whether they are all that its layer has, and no others."""
        shapes = self._module.shapes
        try:
            self._put(unit, {name: mx.zeros(shapes[name]) for name in unit.sizes})
        except (KeyError, IndexError, ValueError):  # its files hold tensors of several units in one
            return False
        if unit.layer == OUTSIDE:
            return True
        if unit.layer >= len(self._layers):
            return False
        places = self._places[unit.layer]
        held = [name for name, _ in tree_flatten(self._layers[unit.layer].parameters())]
        own = {place for place in places for name in held if place.endswith(f".{name}")}
        return len(held) == len(places) == len(own)
