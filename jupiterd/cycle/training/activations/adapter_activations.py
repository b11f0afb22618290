"""What layers keep of a token until the backward pass, where adapters are trained in them.

Pure. Owns that arithmetic. Doesn't know weights, optimizers or devices.

Frozen weights have no gradient, so what they were multiplied with isn't kept, unless an adapter is
multiplied with it, too. Nothing is kept below the first adapter: nothing there is trained. Counted
with torch's saved_tensors_hooks (torch 2.13, transformers 5.23), on MLX (0.32.4, CPU) by its peak
beside models that differ in one size. Bytes of one layer and token in fp32, where h is the width, q
and k the widths of all query and key heads, f that of the feed-forward part, T the tokens:

    a norm                              4 h     its input
    what follows a norm                 4 h     where an adapter has it for its input
    attention                           8 q + 8 k + 4 heads, of normed ones 12 q + 12 k + 8 heads
    the feed-forward part with a gate   12 f    on MLX 16 f; 4 f without a gate
    what goes into its last matrix      4 f     where that has an adapter
    each score on MLX                   4 heads T
    an adapter                          4 for each number of its rank
    DoRA's magnitude                    4 for each output of its matrix, which it is multiplied with

In the first layer with adapters, what comes before them isn't kept either. Of dropout nothing is:
its mask is computed again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.training.activations.saved_activations import (
    FOUR_NORMS,
    WITHOUT_GATE,
    WITHOUT_QUERY_NORMS,
)
from jupiterd.cycle.training.adapters.adapter import (
    MAGNITUDE,
    AdapterOptions,
    is_of_attention,
    module_of,
    place_in_layer,
)
from jupiterd.cycle.training.adapters.adapter_size import shapes_of_adapter
from jupiterd.cycle.training.plan import ModelShape

_LAST: Final = frozenset({
    "c_proj", "dense", "dense_4h_to_h", "down_proj", "fc2", "fc_out", "o_proj", "out_proj", "w2",
    "wo",
})  # fmt: skip
"""The last matrix of attention, or of the feed-forward part, by the names that models have."""


@dataclass(frozen=True)
class Widths:
    """Bytes of numbers, and what an engine keeps."""

    residual: int
    """Bytes of a number that is added up."""
    wide: int
    """Bytes of a number that is multiplied."""
    is_mlx: bool


@dataclass(frozen=True)
class AdaptedLayers:
    """Bytes of a token."""

    layers: int
    """How many layers keep anything."""
    first: int
    """What the lowest of them keeps."""
    each: int
    """What every other keeps."""

    @property
    def total(self) -> int:
        """Return what all layers keep together."""
        return self.first + (self.layers - 1) * self.each


def adapted_layers(shape: ModelShape, options: AdapterOptions, widths: Widths) -> AdaptedLayers:
    """Return what is kept beside an adapter.

    Raises:
        UsageError: the model has none of the matrices that are asked for.
    """
    sizes = shapes_of_adapter(shape, options)
    places = [place_in_layer(module_of(name)[0]) for name in sizes]
    lowest = min(number for number, _ in places)
    targets = frozenset(place for number, place in places if number == lowest)
    first, each = (
        _layer_bytes(shape, targets, options.rank, widths, is_first=is_first)
        for is_first in (True, False)
    )
    more = widths.wide * _magnitudes(sizes, lowest)
    return AdaptedLayers(shape.layers - lowest, first + more, each + more)


def _magnitudes(sizes: Mapping[str, tuple[int, ...]], layer: int) -> int:
    """Return how many numbers the magnitudes of one layer have; 0: it isn't DoRA."""
    found = ((*module_of(name), size) for name, size in sizes.items())
    return sum(
        size[0]
        for module, part, size in found
        if part == MAGNITUDE and place_in_layer(module)[0] == layer
    )


def _layer_bytes(
    shape: ModelShape, targets: frozenset[str], rank: int, widths: Widths, *, is_first: bool
) -> int:
    """Return what one layer keeps; targets: the paths in it that have adapters."""
    attention = {place for place in targets if is_of_attention(place)}
    last = {place for place in targets if place.rpartition(".")[2] in _LAST}
    kept = widths.wide * rank * len(targets)
    kept += _attention_bytes(
        shape,
        widths,
        adapts_first=bool(attention - last),
        adapts_last=bool(attention & last),
        learned=not is_first,
    )
    return kept + _feed_forward_bytes(
        shape,
        widths,
        adapts_first=bool(targets - attention - last),
        adapts_last=bool((targets - attention) & last),
        learned=not is_first or bool(attention),
    )


def _attention_bytes(
    shape: ModelShape, widths: Widths, *, adapts_first: bool, adapts_last: bool, learned: bool
) -> int:
    """Return what attention keeps, with its norm; learned: its input depends on an adapter."""
    kept = _norm_bytes(shape, widths, learned=learned, is_read=adapts_first)
    queries, keys = (heads * shape.head_dim for heads in (shape.heads, shape.kv_heads))
    if not (learned or adapts_first):
        return kept + (widths.wide * queries if adapts_last else 0)
    is_normed = shape.architecture not in WITHOUT_QUERY_NORMS
    kept += (3 if is_normed else 2) * widths.wide * (queries + keys)
    scores = widths.wide * shape.heads * shape.seq_len if widths.is_mlx else 0
    return kept + (8 if is_normed else 4) * shape.heads + scores


def _feed_forward_bytes(
    shape: ModelShape, widths: Widths, *, adapts_first: bool, adapts_last: bool, learned: bool
) -> int:
    """Return what the feed-forward part keeps, with its norm."""
    kept = _norm_bytes(shape, widths, learned=learned, is_read=adapts_first)
    wide = widths.wide * shape.ff
    if learned or adapts_first:
        gated = 4 if widths.is_mlx else 3
        kept += wide * (1 if shape.architecture in WITHOUT_GATE else gated)
    return kept + (wide if adapts_last else 0)


def _norm_bytes(shape: ModelShape, widths: Widths, *, learned: bool, is_read: bool) -> int:
    """Return what a part's norms keep; is_read: an adapter multiplies what comes out of one."""
    norms = 2 if shape.architecture in FOUR_NORMS else 1
    each = (widths.residual * norms if learned else 0) + (widths.wide if is_read else 0)
    return each * shape.hidden
