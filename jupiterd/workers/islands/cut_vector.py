"""What of the flat vector of all weights a rank holds where a model is cut over the ranks.

Owns which stretches these are, and what all ranks work out together without anybody having all
numbers: packing in blocks that don't end where stretches do, and the hash of everything. It comes
out to the bit as a rank would work it out that holds everything (`held_vector`). Doesn't know
rounds, or how numbers travel.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final

import numpy as np
from blake3 import blake3

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_layout import Piece, units_of
from jupiterd.workers.islands.compression import Compressor
from jupiterd.workers.islands.flat import CHUNK, FlatLayout, Vector, slices_of
from jupiterd.workers.islands.held_vector import are_numbers, length
from jupiterd.workers.islands.outer_step import OuterState
from jupiterd.workers.islands.pseudo_gradient_stream import GrowingPseudoGradient
from jupiterd.workers.training_engine import TensorPiece, Tensors, TrainingEngine

PART: Final = 64 * CHUNK
"""Numbers that all ranks have in memory at a time; whole blocks of them."""

Places = tuple[slice, slice]
"""Where numbers lie in a rank's vector, and where in a part of the flat one."""


class Stretches:
    """Those of the flat vector that one rank holds, one behind the other in its own."""

    def __init__(self, layout: FlatLayout, pieces: Mapping[str, Piece]) -> None:
        """pieces: name of a tensor -> what of it the rank holds, if anything."""
        starts = layout.starts
        self.pieces = [pieces[name] for name, _ in layout.shapes if name in pieces]
        """In their order."""
        self._starts = [starts[piece.name] + piece.start for piece in self.pieces]
        self._stops = [starts[piece.name] + piece.end for piece in self.pieces]
        sizes = (piece.end - piece.start for piece in self.pieces)
        self._places = [0, *accumulate(sizes)]
        self.size = self._places[-1]

    def inside(self, part: slice) -> Iterator[Places]:
        """Yield where the rank's numbers of a part lie."""
        for number in range(bisect_right(self._stops, part.start), len(self.pieces)):
            start = max(part.start, self._starts[number])
            stop = min(part.stop, self._stops[number])
            if start >= stop:
                return
            place = self._places[number] + start - self._starts[number]
            there = slice(start - part.start, stop - part.start)
            yield slice(place, place + stop - start), there

    def views(self, vector: Vector) -> Iterator[tuple[Piece, Vector]]:
        """Yield the pieces that a vector holds."""
        for number, piece in enumerate(self.pieces):
            yield piece, vector[self._places[number] : self._places[number + 1]]


class CutVector:
    """That of one rank; all of them call the same, but for `inside` and what makes vectors."""

    is_cut = True

    def __init__(self, engine: TrainingEngine, partition: Partition) -> None:
        self._engine = engine
        self.layout = FlatLayout.of_shapes(engine.shapes)
        units = units_of(engine.shapes)
        bounds = [unit.bounds(partition.parts) for unit in units]
        self._of_ranks = [
            Stretches(
                self.layout,
                {
                    piece.name: piece
                    for unit, cuts in zip(units, bounds, strict=True)
                    for piece in unit.pieces(cuts[rank], cuts[rank + 1])
                },
            )
            for rank in range(engine.world_size)
        ]
        self._own = self._of_ranks[engine.rank]
        self.size = self._own.size

    def taken(self) -> Vector:
        """Return the rank's own weights, a copy."""
        found = {name: values for name, _, values in self._engine.own_weights()}
        vector = np.empty(self.size, np.float32)
        for piece, view in self._own.views(vector):
            view[...] = found[piece.name]
        return vector

    def load(self, vector: Vector) -> None:
        """Give the engines of all ranks their weights."""
        self._engine.load_own(self.pieces(vector))

    def read(self, tensors: Tensors) -> Vector:
        """Return what is the rank's of whole tensors."""
        vector = np.empty(self.size, np.float32)
        for piece, view in self._own.views(vector):
            view[...] = tensors[piece.name].reshape(-1)[piece.start : piece.end]
        return vector

    def pieces(self, vector: Vector) -> Iterator[TensorPiece]:
        """Yield a vector by tensors, as views."""
        for piece, view in self._own.views(vector):
            yield TensorPiece(piece.name, piece.start, view)

    def inside(self, part: slice) -> Iterable[Places]:
        """Yield where the rank's numbers of a part lie."""
        return self._own.inside(part)

    def all_are_numbers(self, vector: Vector) -> bool:
        """Say whether all of it is finite, on all ranks."""
        rows = self._engine.gather([float(are_numbers(vector))])
        return all(bool(are) for (are,) in rows)

    def length(self, vector: Vector) -> float:
        """Return the L2 norm of all ranks' vectors together."""
        rows = self._engine.gather([length(vector)])
        return length(np.array([norm for (norm,) in rows]))

    def digest(self, state: OuterState) -> bytes:
        """Return BLAKE3 of all ranks' states together, as `OuterState.digest` has it."""
        hasher = blake3()
        for vector in (state.weights, state.momentum):
            for part in slices_of(self.layout.size, PART):
                hasher.update(self._whole(vector, part).data.cast("B"))
        return hasher.digest()

    def packed(
        self, compressor: Compressor, vector: Vector, scratch: Path
    ) -> GrowingPseudoGradient:
        """Return a pseudo-gradient packed, and note what is left of this rank's numbers.

        scratch: where the first rank keeps it until it is sent
        """
        place = None if self._engine.rank else scratch
        unsent = GrowingPseudoGradient(place, compressor.kind, self.layout.size)
        vector += compressor.residual
        for part in slices_of(self.layout.size, PART):
            sent = compressor.form(self._whole(vector, part))
            unsent.put(part, sent)
            for there, numbers in sent.chunks():
                of_all = slice(part.start + there.start, part.start + there.stop)
                for own, among in self._own.inside(of_all):
                    vector[own] -= numbers[among]
        compressor.left = vector
        return unsent

    def logits_weights(self, vector: Vector) -> Tensors | None:  # noqa: ARG002 - nobody has all
        """Return that logits are computed with what the engine has been given."""
        return None

    def _whole(self, vector: Vector, part: slice) -> Vector:
        """Return a part of the flat vector, of which each rank gives its numbers."""
        places = [[*stretches.inside(part)] for stretches in self._of_ranks]
        sizes = [sum(own.stop - own.start for own, _ in each) for each in places]
        bounds = (0, *accumulate(sizes))
        mine = [vector[own] for own, _ in places[self._engine.rank]]
        own = np.concatenate([np.empty(0, np.float32), *mine])
        gathered = self._engine.gather_numbers(own, bounds)
        whole, at = np.empty(part.stop - part.start, np.float32), 0
        for _, there in (each for of_rank in places for each in of_rank):
            size = there.stop - there.start
            whole[there] = gathered[at : at + size]
            at += size
        return whole
