"""An island between two outer steps: what it has trained, as others see it.

Owns the way from an engine's weights to what is sent, and from the ways of all to the weights. The
inner optimizer keeps what it has gathered. Doesn't know how ways travel or when a round ends.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from blake3 import blake3

from jupiterd.workers.islands.flat import Layout, Vector
from jupiterd.workers.islands.outer_step import OuterSettings, OuterState
from jupiterd.workers.islands.packing import Kind, Packed, Packer
from jupiterd.workers.islands.round_order import RoundOrder
from jupiterd.workers.train.engine import Engine, Tensors


class Island:
    """One rank's view of it; all ranks of an island have the same weights, and take the same steps.

    begun: the outer state that the round has begun with; None: it is that of the weights now
    residual: what the island's ways have left so far
    order: what it trains on since the last outer step
    """

    def __init__(
        self,
        engine: Engine,
        kind: Kind = "int8",
        begun: OuterState | None = None,
        residual: Vector | None = None,
        order: RoundOrder | None = None,
    ) -> None:
        weights = engine.exact_weights()
        self._engine = engine
        self.layout = Layout.of(weights)
        self.state = OuterState.at(self.layout.flat(weights)) if begun is None else begun
        self.order = order
        self._packer = Packer(self.layout.size, kind, residual)

    @property
    def residual(self) -> Vector:
        """Return what the ways have left so far, of those that count."""
        return self._packer.residual

    @property
    def begun(self) -> Tensors:
        """Return the weights where the round began, as views."""
        return self.layout.tensors(self.state.weights)

    def way(self) -> Vector:
        """Return the way back from the weights to where the round began."""
        return self.state.way_to(self.layout.flat(self._engine.exact_weights()))

    def packed(self, way: Vector) -> Packed:
        """Return the way as it is sent; its numbers must be finite."""
        return self._packer.packed(way)

    def merged(
        self, ways: Iterable[Packed], tokens: Sequence[int], settings: OuterSettings
    ) -> OuterState:
        """Return the outer state after the ways of all; nothing has changed by it yet."""
        return self.state.after(ways, tokens, settings)

    def take(
        self, state: OuterState, order: RoundOrder | None = None, *, is_counted: bool = True
    ) -> None:
        """Train on from an outer state.

        is_counted: our way is in it; else what it had left is forgotten with it
        """
        self._packer.ended(is_counted=is_counted)
        self.state, self.order = state, order
        self._engine.load_exact(self.layout.tensors(state.weights))

    def digest(self) -> bytes:
        """Return BLAKE3 of what must be the same on all islands: weights and momentum."""
        hasher = blake3(self.state.weights.data.cast("B"))
        hasher.update(self.state.momentum.data.cast("B"))
        return hasher.digest()


def length(way: Vector) -> float:
    """Return a way's L2 norm; infinite where one of its numbers is none."""
    norm = float(np.linalg.norm(way))
    return norm if np.isfinite(norm) else float("inf")
