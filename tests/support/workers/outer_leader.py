"""Plays the daemons of some islands, and the leader that decides on their outer steps.

Owns the line of steps and who is told of them, over the workers' own links. Workers are real: in a
thread of this process, or in one of their own that comes to `address`. Doesn't know what they
compute. A round closes once all islands that are `expected` are in.
"""

import math
import socket
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from jupiterd.cycle.base.positions import Positions, Range, split, written
from jupiterd.cycle.islands.outer_orders import MOMENTUM, RATE
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.cycle.training.state_divergence import adrift
from jupiterd.protocol.frames import (
    Frame,
    FrameReader,
    OuterStepArrived,
    OuterStepMissing,
    OuterStepWanted,
    Progressed,
    PseudoGradientWritten,
    RunTask,
    StopTask,
    StoreAsked,
    TaskFailed,
    TaskFinished,
    encode,
)
from jupiterd.protocol.training_values import PseudoGradient, RoundOrder
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.link import Task
from tests.support.workers.open_store import OpenStore
from tests.support.workers.tiny_run import tiny_shape, train_params

RUN = "the run"
WAIT_S = 50.0
DIGEST_BYTES = 32

_open: list[socket.socket] = []
"""Closing one would end this process, as it would a worker."""

Told = TypeVar("Told", bound=Frame)


@dataclass(frozen=True)
class Step:
    """An outer step, as the ledger would have it."""

    number: int
    first_step: int
    steps: int
    pseudo_gradients: Mapping[str, tuple[Path, int]] = field(
        default_factory=dict[str, tuple[Path, int]]
    )
    """Island -> its way's folder and tokens, of those that count."""
    positions: Mapping[str, tuple[Range, ...]] = field(default_factory=dict[str, Any])

    @property
    def name(self) -> str:
        return f"step {self.number}"


@dataclass
class Rank:
    """One rank, and what it has said."""

    island: str
    link: socket.socket
    folder: Path
    number: int = 0
    """In its island."""
    frames: list[Frame] = field(default_factory=list[Frame])
    wants: str | None = None

    def said(self, kind: type[Told]) -> list[Told]:
        return [frame for frame in self.frames if isinstance(frame, kind)]

    def tell(self, frame: Frame) -> None:
        self.link.sendall(encode(frame))


class OuterLeader:
    """Leads a run of equal rounds."""

    def __init__(
        self,
        folder: Path,
        plan: TrainPlan,
        batches: Mapping[str, int],
        every_steps: int,
        settings: OuterSettings | None = None,
        *,
        kind: str = "int8",
        same_batches: bool = False,
        lag: int = 1,
    ) -> None:
        """Record the beginning.

        batches: island -> its sequences in each inner step
        lag: 1 for rounds that block, 2 for those that overlap
        """
        self.folder, self.plan, self.batches = folder, plan, dict(batches)
        self.every_steps, self.kind, self.same_batches = every_steps, kind, same_batches
        self.lag = lag
        self.settings = settings or OuterSettings(RATE, MOMENTUM)
        self.expected = set(batches)
        self.left_out: set[tuple[int, str]] = set()
        """Steps and the islands whose ways don't count in them."""
        self.adrift: list[tuple[int, str]] = []
        """Steps and the islands whose ways they left out since their weights weren't the others'.
        """
        self.shape = tiny_shape()
        self.ranks: list[Rank] = []
        self.refuses_after = ""
        """A step that nothing follows, as far as ranks are told."""
        self._ways: dict[str, tuple[Path, PseudoGradient]] = {}
        self._stores: defaultdict[str, OpenStore] = defaultdict(OpenStore)
        """Where the ranks of an island meet."""
        self._played: Mapping[int, Mapping[str, tuple[Path, int]]] = {}
        self._positions = Positions()
        self._changed = threading.Condition(threading.RLock())
        self.line: list[Step] = []
        while len(self.line) < lag:
            self._append({})

    def rank(
        self, island: str, inputs: Mapping[str, str], link: socket.socket, **params: Any
    ) -> Rank:
        """Take up a worker's link, and tell it what to do."""
        folder = self.folder / f"{island}-{len(self.ranks)}"
        folder.mkdir(parents=True)
        rank = Rank(island, link, folder, int(params.get("rank", 0)))
        self.ranks.append(rank)
        order = train_params(self.shape, self.plan, node_name=island, **params)
        order["island"] = {"run": RUN, "island": island, "kind": self.kind}
        rank.tell(RunTask("train", order, dict(inputs), str(folder)))
        threading.Thread(target=self._serve, args=(rank,), daemon=True).start()
        return rank

    def task(self, island: str, inputs: Mapping[str, str], **params: Any) -> tuple[Task, Rank]:
        """Return a task for a thread of this process."""
        ours, theirs = socket.socketpair()
        _open.extend((ours, theirs))
        rank = self.rank(island, inputs, ours, **params)
        return Task(theirs), rank

    def listen(self, island: str, inputs: Mapping[str, str], address: Path, **params: Any) -> None:
        """Let a process come to that address for its task."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(address))
        listener.listen()

        def accept() -> None:
            with listener:
                link, _ = listener.accept()
            _open.append(link)
            self.rank(island, inputs, link, **params)

        threading.Thread(target=accept, daemon=True).start()

    def again(self, folder: Path, number: int, island: str) -> "OuterLeader":
        """Return one that has just taken that outer step, with only this island about.

        The others' ways are those that they have sent to us.
        """
        other = OuterLeader(
            folder,
            self.plan,
            self.batches,
            self.every_steps,
            self.settings,
            kind=self.kind,
            lag=self.lag,
        )
        other.line = self.line[: number + 1]
        other.expected = {island}
        other._played = {
            step.number: {
                name: pseudo_gradient
                for name, pseudo_gradient in step.pseudo_gradients.items()
                if name != island
            }
            for step in self.line
        }
        given_out = sum(step.steps * sum(self.batches.values()) for step in other.line)
        other._positions = Positions(given_out)
        return other

    def wait_for(self, rank: Rank, kind: type[Frame], count: int = 1) -> None:
        """Return once it has said so much."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(rank.said(kind)) >= count, WAIT_S)

    def wait_for_end(self, rank: Rank) -> None:
        """Return once it has said how it ended, which may be read after its process is gone."""
        with self._changed:
            ended = (TaskFinished, TaskFailed)
            assert self._changed.wait_for(lambda: any(map(rank.said, ended)), WAIT_S)

    def wait_for_step(self, rank: Rank, step: int) -> None:
        """Return once it has told that its weights contain so many steps."""
        with self._changed:
            assert self._changed.wait_for(
                lambda: any(told.done >= step for told in rank.said(Progressed)), WAIT_S
            )

    def wait_for_line(self, steps: int) -> None:
        """Return once so many outer steps were taken."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.line) >= steps, WAIT_S)

    def end(self, island: str) -> None:
        """Know that its ranks are gone, and let others meet in their place."""
        with self._changed:
            del self._stores[island]
            for rank in self.ranks:
                rank.wants = None if rank.island == island else rank.wants

    def forget_ways(self) -> None:
        """Know of no way that was sent, as another leader doesn't."""
        self._ways = {}

    def stop(self, rank: Rank) -> None:
        rank.tell(StopTask("enough"))

    def close_round(self) -> None:
        """Take the next outer step, with whoever is in."""
        with self._changed:
            number = len(self.line)
            pseudo_gradients = {
                island: (folder, pseudo_gradient.tokens)
                for island, (folder, pseudo_gradient) in self._ways.items()
                if (number, island) not in self.left_out and math.isfinite(pseudo_gradient.norm)
            }
            for island in self._drifted(pseudo_gradients):
                self.adrift.append((number, island))
                pseudo_gradients.pop(island, None)
            pseudo_gradients |= self._played.get(number, {})
            self._ways = {}
            self._append(dict(sorted(pseudo_gradients.items())))
            self._answer()

    def _drifted(self, counted: Collection[str]) -> tuple[str, ...]:
        newest = self.line[-1].name
        told = {
            each: pseudo_gradient.digest
            for each, (_, pseudo_gradient) in self._ways.items()
            if pseudo_gradient.stands_at == newest
        }
        return adrift(told, counted)

    def _append(self, merged: Mapping[str, tuple[Path, int]]) -> None:
        first_step = self.line[-1].first_step + self.line[-1].steps if self.line else 0
        steps = min(self.every_steps, self.plan.steps - first_step)
        self.line.append(self._ordered(Step(len(self.line), first_step, steps, merged)))

    def _ordered(self, step: Step) -> Step:
        """Give out what is trained on after it."""
        if self.same_batches:
            taken, self._positions = self._positions.take(step.steps * max(self.batches.values()))
            return replace(step, positions=dict.fromkeys(self.batches, taken))
        counts = [step.steps * batch for batch in self.batches.values()]
        taken, self._positions = self._positions.take(sum(counts))
        parts = split(taken, counts)
        return replace(step, positions=dict(zip(self.batches, parts, strict=True)))

    def _serve(self, rank: Rank) -> None:
        reader = FrameReader()
        while data := rank.link.recv(1 << 16):
            for frame in reader.feed(data):
                with self._changed:
                    rank.frames.append(frame)
                    self._hear(rank, frame)
                    self._changed.notify_all()

    def _hear(self, rank: Rank, frame: Frame) -> None:
        if isinstance(frame, StoreAsked):
            self._stores[rank.island].answer_later(frame, rank.tell)
        if isinstance(frame, OuterStepWanted):
            rank.wants = frame.after
            self._answer()
        if isinstance(frame, PseudoGradientWritten):
            self._take_in(rank, frame.path, frame.pseudo_gradient)

    def _take_in(self, rank: Rank, path: str, pseudo_gradient: PseudoGradient) -> None:
        if pseudo_gradient.after == self.line[-self.lag].name:
            self._ways.setdefault(rank.island, (rank.folder / path, pseudo_gradient))
            if self._ways.keys() >= self.expected:
                self.close_round()

    def _answer(self) -> None:
        for rank in self.ranks:
            if rank.wants is None:
                continue
            if rank.wants == self.refuses_after != "":
                rank.tell(OuterStepMissing(rank.wants, "its line counts no more"))
                rank.wants = None
                continue
            number = 0 if not rank.wants else int(rank.wants.removeprefix("step ")) + 1
            if number < len(self.line):
                rank.tell(self._arrived(rank, self.line[number]))
                rank.wants = None

    def _arrived(self, rank: Rank, step: Step) -> OuterStepArrived:
        is_part = step.steps > 0 and rank.island in self.batches
        return OuterStepArrived(
            after=rank.wants or "",
            order=RoundOrder(
                step=step.name,
                number=step.number,
                first_step=step.first_step,
                steps=step.steps,
                batch_sequences=self.batches[rank.island] if is_part else 0,
                positions=written(step.positions[rank.island]) if is_part else "",
                island=rank.island,
                lag=self.lag,
            ),
            pseudo_gradients=[str(folder) for folder, _ in step.pseudo_gradients.values()],
            tokens=[tokens for _, tokens in step.pseudo_gradients.values()],
            rate=self.settings.rate,
            momentum=self.settings.momentum,
            is_counted=rank.island in step.pseudo_gradients,
        )


def digests(text: str, island: str) -> dict[int, str]:
    """Return what a rank's log has of each outer step, by its number."""
    lines = [line for line in text.splitlines() if f"Node {island} " in line and "Digest" in line]
    return {
        int(line.partition("Outer step ")[2].split()[0]): line.rpartition(" ")[2] for line in lines
    }
