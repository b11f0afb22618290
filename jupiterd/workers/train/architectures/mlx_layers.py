"""The layers of a model of mlx-lm: documents kept apart in them, and computing them twice.

Owns what stands around a layer's call; the layer's own code isn't touched. Doesn't know models.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import mlx.core as mx
from mlx import nn

from jupiterd.errors import UsageError


class LayerCalls:
    """How the layers of one model are called."""

    def __init__(self, layers: Sequence[nn.Module], *, computes_twice: bool) -> None:
        """Take over the layers; computes_twice: their insides aren't kept for the backward pass."""
        self.own_documents: mx.array | None = None
        """Which tokens each may see, bool[sequences, 1, tokens, tokens]; None: all before it."""
        self._kinds = [type(layer) for layer in layers]
        for layer in layers:
            layer.__class__ = _surrounded(type(layer), self, computes_twice=computes_twice)

    def check_masks(self) -> None:
        """Make sure that documents can be kept apart.

        Raises:
            UsageError: a layer takes no mask.
        """
        if blind := [kind for kind in self._kinds if _mask_place(kind) is None]:
            raise UsageError(
                f"documents can't be kept apart in MLX's {blind[0].__module__.rpartition('.')[2]}",
                "document masks: off",
            )


def own_documents_mask(documents: mx.array) -> mx.array:
    """Return which tokens each may see, bool[sequences, 1, tokens, tokens]: its document's."""
    same = documents[:, None, :, None] == documents[:, None, None, :]
    positions = mx.arange(documents.shape[1])
    return same & (positions[:, None] >= positions)


def _surrounded(kind: type[nn.Module], calls: LayerCalls, *, computes_twice: bool) -> Any:  # noqa: ANN401 - a class
    place = _mask_place(kind)

    def call(self: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - as the layer's own
        if calls.own_documents is not None and place is not None:
            given, named = _masked(given, named, place, calls.own_documents)
        if computes_twice:
            return _again(self, kind, given, named)
        return kind.__call__(self, *given, **named)

    return type(kind.__name__, (kind,), {"__call__": call})


def _mask_place(kind: type[nn.Module]) -> int | None:
    """Return where the mask stands among what a layer is given; None: it takes none."""
    names = [*inspect.signature(kind.__call__).parameters][1:]
    return names.index("mask") if "mask" in names else None


def _masked(
    given: tuple[Any, ...], named: Mapping[str, Any], place: int, own: mx.array
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with a mask that also keeps documents apart."""
    if place < len(given):
        mask = _both(given[place], own)
        return (*given[:place], mask, *given[place + 1 :]), dict(named)
    return given, {**named, "mask": _both(named.get("mask"), own)}


def _both(mask: Any, own: mx.array) -> mx.array:  # noqa: ANN401 - an array, a word or None
    if mask is None or isinstance(mask, str):
        return own
    if mask.dtype == mx.bool_:
        return mask & own
    return mx.where(own, mask, mx.array(-mx.inf, mask.dtype))


def _again(layer: Any, kind: type[nn.Module], given: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return what the layer returns, and keep nothing of its insides for the backward pass.

    What can't be differentiated, such as masks, is left out of what checkpoint is told of.
    """
    places = [n for n, value in enumerate(given) if _is_differentiable(value)]
    names = [name for name, value in named.items() if _is_differentiable(value)]

    def computed(parameters: Any, some: list[mx.array], others: dict[str, mx.array]) -> Any:  # noqa: ANN401
        layer.update(parameters)
        filled = list(given)
        for place, value in zip(places, some, strict=True):
            filled[place] = value
        return kind.__call__(layer, *filled, **{**named, **others})

    values = [given[place] for place in places]
    return mx.checkpoint(computed)(
        layer.trainable_parameters(), values, {name: named[name] for name in names}
    )


def _is_differentiable(value: Any) -> bool:  # noqa: ANN401 - anything
    return isinstance(value, mx.array) and mx.issubdtype(value.dtype, mx.floating)
