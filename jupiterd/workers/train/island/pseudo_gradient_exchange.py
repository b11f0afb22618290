"""What one rank of an island exchanges: its own pseudo-gradient out, those of all in.

Owns packing and merging, beside whatever the rank does meanwhile, and what is told of the outer
state that a pseudo-gradient leads on from. Doesn't know when either is due (`outer_rounds`), who
compares what is told (`cycle.training.state_divergence`), or how pseudo-gradients travel: its
daemon brings and takes them.
"""

import math
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

from jupiterd.protocol.frames import OuterStepArrived, PseudoGradientWritten
from jupiterd.protocol.training_values import PseudoGradient
from jupiterd.workers.islands.compression import Packed
from jupiterd.workers.islands.fixed_batch import FixedBatch
from jupiterd.workers.islands.flat import Vector
from jupiterd.workers.islands.held_vector import Unsent
from jupiterd.workers.islands.island import IslandView, Merged
from jupiterd.workers.islands.outer_step import OuterSettings, OuterState
from jupiterd.workers.islands.pseudo_gradient_file import (
    read_pseudo_gradient,
    write_pseudo_gradient,
)
from jupiterd.workers.islands.pseudo_gradient_stream import StreamedPseudoGradient
from jupiterd.workers.link import Task
from jupiterd.workers.training_engine import TrainingEngine


class PseudoGradientExchange:
    """One rank's side of it; rank 0 sends for its island."""

    def __init__(
        self, task: Task, engine: TrainingEngine, island: IslandView, seq_len: int
    ) -> None:
        self._task = task
        self._is_first = engine.rank == 0
        self._island = island
        self._fixed_batch = FixedBatch(engine, seq_len)
        self._stands_at, self._digest = "", b""

    def begin(self, step: str, digest: bytes = b"", *, is_compared: bool = True) -> None:
        """Take in that what all have in common is what follows an outer step.

        digest: of that state; empty: it is worked out once it is asked for
        is_compared: the logits there may be asked for
        """
        self._stands_at, self._digest = step, digest
        if is_compared:
            self._compute_logits(step)

    def _compute_logits(self, step: str) -> None:
        weights = self._island.held.logits_weights(self._island.state.weights)
        if weights is not None or not step:
            self._fixed_batch.pass_through(step, weights)
            return
        with self._island.merged_weights():
            self._fixed_batch.pass_through(step, None)

    def check(self) -> None:
        """Raise what went wrong meanwhile, if anything did."""
        self._island.background.check()

    def merged(self, arrived: OuterStepArrived) -> Merged:
        """Return what follows an outer step; where the model is cut, all ranks hash it together."""
        state, digest = self.merging(arrived).result()
        return state, digest or self._island.held.digest(state)

    def merging(self, arrived: OuterStepArrived) -> Future[Merged]:
        """Return what follows an outer step; it is worked out beside all else, but for a hash."""
        settings = OuterSettings(arrived.rate, arrived.momentum)

        def merge() -> Merged:
            state = self._island.merged(self._pseudo_gradients(arrived), arrived.tokens, settings)
            return state, b"" if self._island.held.is_cut else state.digest()

        return self._island.background.result(arrived.order.step, merge)

    def _pseudo_gradients(self, arrived: OuterStepArrived) -> Iterator[Packed]:
        """Yield the pseudo-gradients of all, one in memory at a time."""
        held = self._island.held
        read = StreamedPseudoGradient if held.is_cut else read_pseudo_gradient
        return (read(Path(folder), held.layout.size) for folder in arrived.pseudo_gradients)

    def send(self, unpacked: PseudoGradientWritten, base: Vector, weights: Vector) -> None:
        """Pack the pseudo-gradient (weights to base) on every rank, and send it from rank 0.

        Where the model is cut, ranks pack together, so no other thread does.
        """
        pseudo_gradient, held = self._standing(unpacked.pseudo_gradient), self._island.held
        state = self._island.state

        def pack() -> tuple[PseudoGradient, Unsent | None]:
            difference = base - weights
            norm = held.length(difference)
            found = self._packed(unpacked.path, difference) if math.isfinite(norm) else None
            return replace(pseudo_gradient, norm=norm), found

        if held.is_cut:
            found = pack()
            self._island.background.begin(lambda: self._hand_over(unpacked.path, *found, state))
        else:
            self._island.background.begin(lambda: self._hand_over(unpacked.path, *pack(), state))

    def _packed(self, path: str, difference: Vector) -> Unsent:
        scratch = self._task.output_dir / f"{path}.unpacked"
        return self._island.held.packed(self._island.packer, difference, scratch)

    def send_nothing(self, unpacked: PseudoGradientWritten) -> None:
        """Say that our pseudo-gradient is no number."""
        infinite = replace(self._standing(unpacked.pseudo_gradient), norm=math.inf)
        self._hand_over(unpacked.path, infinite, None, self._island.state)

    def _standing(self, pseudo_gradient: PseudoGradient) -> PseudoGradient:
        """Return the same with our present place: outer steps are taken during packing."""
        if self._island.held.is_cut:  # all ranks hash together, now
            self._digest = self._digest or self._island.held.digest(self._island.state)
        return replace(pseudo_gradient, stands_at=self._stands_at, digest=self._digest)

    def _hand_over(
        self,
        path: str,
        pseudo_gradient: PseudoGradient,
        packed: Unsent | None,
        state: OuterState,
    ) -> None:
        if not self._is_first:
            return
        folder = self._task.output_dir / path
        if packed is None:
            write_pseudo_gradient(folder, None)
        else:
            packed.write(folder)
        logits = self._fixed_batch.logits_at(pseudo_gradient.after)
        # One that goes on from a checkpoint hasn't merged it here.
        digest = pseudo_gradient.digest or state.digest()
        whole = replace(pseudo_gradient, logits=logits, digest=digest)
        self._task.send(PseudoGradientWritten(path, whole))
