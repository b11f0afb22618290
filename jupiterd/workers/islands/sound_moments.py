"""The moments of an island whose weights became no numbers, as far as they are numbers themselves.

Owns which are dropped: those of each tensor that has one number which is none. Doesn't know what
they are for.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from jupiterd.workers.training_engine import TensorPiece, Tensors, TrainingEngine, moments_of


def sound_moments(engine: TrainingEngine) -> Tensors:
    """Return moments to go on with, zeros for those that are dropped; all ranks take part."""
    if engine.partition is not None:
        return _of_parts(engine)
    return {
        name: values if np.isfinite(values).all() else np.zeros_like(values)
        for name, values in engine.moments().items()
    }


def _of_parts(engine: TrainingEngine) -> Tensors:
    shapes = {
        f"{kind}.{name}": shape
        for name, shape in engine.shapes.items()
        for kind in moments_of(name, len(shape), engine.options)
    }
    ours = {piece.name: piece for piece in engine.own_pieces() if piece.name in shapes}
    are_sound = [name not in ours or np.isfinite(ours[name].values).all() for name in shapes]
    rows = engine.gather([*map(float, are_sound)])
    sound = {
        name for name, flags in zip(shapes, zip(*rows, strict=True), strict=True) if all(flags)
    }
    kept = {
        name: piece._replace(values=piece.values.copy())
        for name, piece in ours.items()
        if name in sound
    }
    return _Placed(shapes, kept)


class _Placed(Mapping[str, NDArray[np.float32]]):
    """Whole tensors, made when they are asked for, in which this rank's pieces alone are right."""

    def __init__(
        self, shapes: Mapping[str, tuple[int, ...]], pieces: Mapping[str, TensorPiece]
    ) -> None:
        self._shapes, self._pieces = shapes, pieces

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        whole = np.zeros(self._shapes[name], np.float32)
        if piece := self._pieces.get(name):
            whole.reshape(-1)[piece.start : piece.start + len(piece.values)] = piece.values
        return whole

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)
