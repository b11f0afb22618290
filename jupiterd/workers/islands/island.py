"""An island between two outer steps: what it has trained, as others see it.

Owns the way from an engine's weights to what is sent, and from what comes back to the weights. The
inner optimizer keeps what it has gathered. Doesn't know how ways travel or when a round ends.
"""

import numpy as np
from blake3 import blake3

from jupiterd.workers.islands.blocks import cuts
from jupiterd.workers.islands.flat import Layout, Vector
from jupiterd.workers.islands.outer_step import OuterSettings, OuterState
from jupiterd.workers.islands.packing import Kind, Packed, Packer
from jupiterd.workers.train.engine import Engine


class Island:
    """One rank's view of it; all ranks of an island have the same weights, and take the same steps.

    islands: how many there are, each the owner of one part
    """

    def __init__(
        self, engine: Engine, settings: OuterSettings, islands: int, kind: Kind = "int8"
    ) -> None:
        weights = engine.weights()
        self._engine = engine
        self._settings = settings
        self._layout = Layout.of(weights)
        self.state = OuterState.at(self._layout.flat(weights))
        self.parts = cuts(self._layout.size, islands)
        self._packers = [Packer(part.stop - part.start, kind) for part in self.parts]

    def way(self) -> Vector:
        """Return the way back from the weights to where the round began."""
        return self.state.way_to(self._layout.flat(self._engine.weights()))

    def packed(self, way: Vector) -> list[Packed]:
        """Return the way as it is sent, part by part; its like is sent once a round."""
        return [
            packer.packed(way[part]) for part, packer in zip(self.parts, self._packers, strict=True)
        ]

    def step(self, merged: list[Packed]) -> None:
        """Take the outer step along what all islands have merged, and train on from there."""
        self.state.step(np.concatenate([part.restored() for part in merged]), self._settings)
        self._engine.load_weights(self._layout.tensors(self.state.weights))

    def digest(self) -> bytes:
        """Return BLAKE3 of what must be the same on all islands: weights and momentum."""
        hasher = blake3(self.state.weights.tobytes())
        hasher.update(self.state.momentum.tobytes())
        return hasher.digest()
