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
from jupiterd.workers.islands.island import IslandView, Merged, length
from jupiterd.workers.islands.outer_step import OuterSettings, OuterState
from jupiterd.workers.islands.pseudo_gradient_file import (
    read_pseudo_gradient,
    write_pseudo_gradient,
)
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
            self._fixed_batch.pass_through(step, self._island.begun)

    def check(self) -> None:
        """Raise what went wrong meanwhile, if anything did."""
        self._island.background.check()

    def merging(self, arrived: OuterStepArrived) -> Future[Merged]:
        """Return what follows an outer step; it is worked out beside all else."""
        settings = OuterSettings(arrived.rate, arrived.momentum)

        def merge() -> Merged:
            state = self._island.merged(self._pseudo_gradients(arrived), arrived.tokens, settings)
            return state, state.digest()

        return self._island.background.result(arrived.order.step, merge)

    def _pseudo_gradients(self, arrived: OuterStepArrived) -> Iterator[Packed]:
        """Yield the pseudo-gradients of all, one in memory at a time."""
        size = self._island.layout.size
        return (read_pseudo_gradient(Path(folder), size) for folder in arrived.pseudo_gradients)

    def send(self, unpacked: PseudoGradientWritten, base: Vector, weights: Vector) -> None:
        """Pack the pseudo-gradient (weights to base) on every rank, and send it from rank 0."""
        pseudo_gradient, state = self._standing(unpacked.pseudo_gradient), self._island.state

        def pack_and_send() -> None:
            difference = base - weights
            norm = length(difference)
            packed = self._island.packer.packed(difference) if math.isfinite(norm) else None
            self._hand_over(unpacked.path, replace(pseudo_gradient, norm=norm), packed, state)

        self._island.background.begin(pack_and_send)

    def send_nothing(self, unpacked: PseudoGradientWritten) -> None:
        """Say that our pseudo-gradient is no number."""
        infinite = replace(self._standing(unpacked.pseudo_gradient), norm=math.inf)
        self._hand_over(unpacked.path, infinite, None, self._island.state)

    def _standing(self, pseudo_gradient: PseudoGradient) -> PseudoGradient:
        """Return the same with our present place: outer steps are taken during packing."""
        return replace(pseudo_gradient, stands_at=self._stands_at, digest=self._digest)

    def _hand_over(
        self, path: str, pseudo_gradient: PseudoGradient, packed: Packed | None, state: OuterState
    ) -> None:
        if self._is_first:
            write_pseudo_gradient(self._task.output_dir / path, packed)
            logits = self._fixed_batch.logits_at(pseudo_gradient.after)
            # One that goes on from a checkpoint hasn't merged it here.
            digest = pseudo_gradient.digest or state.digest()
            whole = replace(pseudo_gradient, logits=logits, digest=digest)
            self._task.send(PseudoGradientWritten(path, whole))
