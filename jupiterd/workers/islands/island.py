"""An island between two outer steps: what it has trained, as others see it.

Owns what lies from an engine's weights to what is sent, and from the pseudo-gradients of all to the
weights. The inner optimizer keeps what it has gathered. Doesn't know how pseudo-gradients travel or
when a round ends.

An island that doesn't wait for the others trains on from the weights that it has ended its round
with. Once the outer step of that round is there, what it has trained since then is carried over:
the new outer weights, plus the pseudo-gradient from there to here (as a late difference is
rebased).
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.background_merge import BackgroundMerge
from jupiterd.workers.islands.compression import Compressor, Kind, Packed
from jupiterd.workers.islands.cut_vector import CutVector
from jupiterd.workers.islands.flat import FlatLayout, Vector
from jupiterd.workers.islands.held_vector import HeldVector, WholeVector
from jupiterd.workers.islands.outer_step import OuterSettings, OuterState
from jupiterd.workers.training_engine import TrainingEngine

Merged = tuple[OuterState, bytes]
"""What follows an outer step, and its digest."""


class IslandView:
    """One rank's view of it; all ranks of an island have the same weights, and take the same steps.

    Where the model is cut over them, each has the outer state of its own stretches alone.

    state: what follows the last outer step that was taken
    base: the weights from which the round's pseudo-gradient is measured
    orders: of the rounds that no outer step has closed yet, the oldest first
    current: the round that is trained, or was trained last
    """

    def __init__(
        self,
        engine: TrainingEngine,
        kind: Kind = "int8",
        begun: OuterState | None = None,
        residual: Vector | None = None,
    ) -> None:
        self.held = held_vector(engine)
        self.state = OuterState.at(self.held.taken()) if begun is None else begun
        self.base = self.state.weights
        self.orders: Sequence[RoundOrder] = ()
        self.current: RoundOrder | None = None
        self.background = BackgroundMerge[Merged]()
        self.packer = Compressor(self.held.size, kind, residual)
        self._ended: Vector | None = None

    @property
    def layout(self) -> FlatLayout:
        """Return where each tensor lies in the flat vector of all weights."""
        return self.held.layout

    @property
    def last(self) -> RoundOrder | None:
        """Return the order of the last outer step that was taken; None before the first one."""
        return self.orders[-1] if self.orders else None

    @property
    def next(self) -> RoundOrder | None:
        """Return the next round that it has a part in; None where none was ordered yet."""
        after = -1 if self.current is None else self.current.number
        return next((each for each in self.orders if each.number > after and each.has_part), None)

    @property
    def sent(self) -> RoundOrder | None:
        """Return the round before this one, where no outer step has merged its pseudo-gradient yet.

        That pseudo-gradient led from the state's weights to the base.
        """
        oldest, current = next(iter(self.orders), None), self.current
        if oldest is None or current is None or not oldest.has_part:
            return None
        return oldest if oldest.number < current.number else None

    def end(self) -> Vector:
        """Return the weights that the round ends with, a copy."""
        self._ended = self.held.taken()
        return self._ended

    def begin(self, order: RoundOrder) -> None:
        """Begin a round with the weights that there are: of the last one's end, or of all."""
        self.current = order
        if self._ended is not None:
            self.base = self._ended

    def merged(
        self, pseudo_gradients: Iterable[Packed], tokens: Sequence[int], settings: OuterSettings
    ) -> OuterState:
        """Return the outer state after the pseudo-gradients of all; this changes nothing yet."""
        inside = self.held.inside if self.held.is_cut else None
        return self.state.after(pseudo_gradients, tokens, settings, inside)

    def take(
        self,
        state: OuterState,
        order: RoundOrder | None = None,
        *,
        is_counted: bool = True,
        goes_on: bool = False,
    ) -> None:
        """Take an outer step.

        Args:
            state: what follows it.
            order: the round that it orders.
            is_counted: our pseudo-gradient is in it; else what it had left is forgotten with it.
            goes_on: what was trained since the round began, or so far of it, is carried over.
        """
        if order is not None:
            self.orders = [each for each in (*self.orders, order) if each.number > order.closes]
            if order.closes < 0:
                return
        self.packer.ended(is_counted=is_counted)
        self._load(self._carried_over(state.weights) if goes_on else state.weights)
        self.state, self.base = state, state.weights

    def fall_back(self) -> None:
        """Train on from what all have in common; what was trained since then is dropped."""
        self._load(self.state.weights)
        self.base = self.state.weights

    @contextmanager
    def merged_weights(self) -> Generator[None]:
        """Let the engine have the weights of the last outer step meanwhile."""
        trained = self.held.taken()
        self.held.load(self.state.weights)
        yield
        self.held.load(trained)

    def _load(self, weights: Vector) -> None:
        self.held.load(weights)
        self._ended = None

    def _carried_over(self, to: Vector) -> Vector:
        """Return these weights with what was trained on top; without it where it is no number."""
        moved = self.held.taken()
        moved -= self.base
        moved += to
        return moved if self.held.all_are_numbers(moved) else to


def held_vector(engine: TrainingEngine) -> HeldVector:
    """Return what a rank holds of the flat vector of all weights."""
    partition = engine.partition
    return WholeVector(engine) if partition is None else CutVector(engine, partition)
