"""One unit of a model in memory: its tensors as views into one flat vector, and a rank's stretch.

Owns where the numbers lie. Doesn't know other ranks. Where weights are cut, the vector has memory
only while the unit computes: its storage is made empty, and autograd, which keeps views of it for
the backward pass, finds the numbers in the same place when they are there again.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from jupiterd.cycle.training.partition.partition_layout import Piece, Unit

Shapes = Mapping[str, tuple[int, ...]]


class HeldUnit:
    """What a rank holds of a unit."""

    def __init__(  # noqa: PLR0913 - what is held, of which rank, and how
        self,
        unit: Unit,
        shapes: Shapes,
        bounds: Sequence[int],
        rank: int,
        device: str,
        *,
        is_cut: bool,
        kind: torch.dtype = torch.float32,
    ) -> None:
        """is_cut: of the weights, its own stretch alone stays in memory; kind: of its numbers."""
        self.unit, self.bounds, self.is_cut = unit, tuple(bounds), is_cut
        self.start, self.end = bounds[rank], bounds[rank + 1]
        self.places: Mapping[str, int] = dict(
            zip(unit.sizes, (0, *accumulate(unit.sizes.values())), strict=False)
        )
        """Name of a tensor -> where it begins in the unit."""
        self.pieces: Mapping[str, Piece] = {
            piece.name: piece for piece in unit.pieces(self.start, self.end)
        }
        """Name of a tensor -> what of it is in this rank's stretch, if anything."""
        self.whole = torch.empty(unit.size, device=device, dtype=kind)
        self.parameters: Mapping[str, nn.Parameter] = {
            name: nn.Parameter(view.data) for name, view in self.views(self.whole, shapes).items()
        }
        """The whole tensors, as a model's: made now, for without memory there are no views. `data`
        doesn't tell autograd of what is written there: they are gathered between its passes."""
        self._bytes = self.whole.untyped_storage().nbytes()
        if is_cut:
            self.release()
            self.own = torch.empty(self.end - self.start, device=device, dtype=kind)
        else:
            self.own = self.whole[self.start : self.end]

    def views(self, flat: Tensor, shapes: Shapes) -> dict[str, Tensor]:
        """Return the tensors that a flat vector of the unit holds."""
        pairs = zip(self.unit.sizes, flat.split(list(self.unit.sizes.values())), strict=True)
        return {name: part.view(shapes[name]) for name, part in pairs}

    def own_views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return the pieces of tensors that a flat vector of this rank's stretch holds."""
        return {
            name: flat[(at := piece.offset - self.start) : at + piece.end - piece.start]
            for name, piece in self.pieces.items()
        }

    def take(self, name: str, values: Tensor) -> None:
        """Take over what is ours of a whole tensor, or all of it where we hold all."""
        flat = values.flatten()
        if self.is_cut:
            if piece := self.pieces.get(name):
                self.own_views(self.own)[name].copy_(flat[piece.start : piece.end])
        else:
            place = self.places[name]
            self.whole[place : place + len(flat)].copy_(flat)

    def take_piece(self, name: str, values: Tensor) -> None:
        """Take over what is ours of a tensor that is cut; values: [numbers], of our piece alone."""
        self.own_views(self.own)[name].copy_(values)

    def make_room(self) -> None:
        """Give the whole vector memory, and put our stretch into its place."""
        self.whole.untyped_storage().resize_(self._bytes)
        self.whole[self.start : self.end].copy_(self.own)

    def release(self) -> None:
        """Take the whole vector's memory away."""
        self.whole.untyped_storage().resize_(0)
