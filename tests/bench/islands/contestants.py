"""Ways to train one model on the same text: alone, all together in each step, or as islands.

Owns the runs. The engines are the product's own, each with one rank, one after another in this
process: only what they learn is compared here, not how fast they do. All see the same order of
sequences, and each island as many tokens as the one that trains alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from jupiterd.cycle.islands.outer_orders import OuterOrder, OuterTraining, rate_and_momentum
from jupiterd.cycle.training.engine_options import EngineOptions
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.compression import Kind, Packed
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.islands.outer_step import OuterSettings
from jupiterd.workers.train.batches import RankBatches
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.training_engine import TrainingEngine
from tests.bench.islands.text import Text

EngineName = Literal["torch", "mlx"]


@dataclass(frozen=True)
class Race:
    """What is the same for all contestants."""

    shape: ModelShape
    text: Text
    steps: int
    batch_sequences: int
    """Of one island and step."""
    seed: int
    learning_rate: float | None = None
    """None: the size's own."""

    def plan(self, batches: int) -> TrainPlan:
        """Return the plan of an engine that takes so many islands' batches in a step."""
        changes: dict[str, Any] = {
            "steps": self.steps,
            "batch_sequences": self.batch_sequences * batches,
        }
        if self.learning_rate is not None:
            changes["learning_rate"] = self.learning_rate
        plan = derive(self.shape, 1, changes)
        return plan.model_copy(update={"seed": self.seed})

    def engine(self, name: EngineName, batches: int = 1) -> TrainingEngine:
        """Return an engine with the first weights, which are the same on each."""
        plan = self.plan(batches)
        if name == "mlx":
            from jupiterd.workers.train.mlx.mlx_engine import MlxTrainingEngine
            from jupiterd.workers.train.mlx.ring import Ring

            # On a CPU, MLX only emulates bf16, and compiles nothing of what torch is asked to.
            plan = plan.model_copy(update={"options": EngineOptions()})
            return MlxTrainingEngine(self.shape, plan, 0, Ring(0, 1))
        from jupiterd.workers.train.torch.torch_engine import TorchEngine

        engine = TorchEngine(self.shape, plan, 0, ProcessGroup(0, 1), "cpu")
        engine.begin(has_same_weights=True)
        return engine

    def given(self, shares: Sequence[int], island: int = 0) -> RankBatches:
        """Return what one of some islands is given, which share each step so."""
        micro = self.plan(1).micro_batch_sequences
        return RankBatches(
            self.text.shards, f"{self.seed}", sum(shares), micro, island, len(shares)
        )


Told = Callable[[int, float], None]
"""Told the step and the mean loss of it."""


def synchronous(race: Race, islands: int, told: Told = lambda _, __: None) -> float:
    """Train with the batches of so many islands in each step; return bits per byte in the end.

    One island is that which trains alone. What a gang of ranks computes is the same to rounding.
    """
    engine = race.engine("torch", islands)
    batches = race.given([race.batch_sequences * islands])
    schedule = race.plan(islands).schedule()
    for step in range(race.steps):
        cursor = step * race.batch_sequences * islands
        loss, _ = engine.step(list(batches.at(cursor)), schedule.learning_rate(step))
        told(step, loss)
    return race.text.bits_per_byte(engine)


@dataclass(frozen=True)
class Outer:
    """How islands exchange."""

    every_steps: int
    outer: str = "nesterov"
    """Or `average`."""
    kind: Kind = "int8"
    same_batches: bool = False
    """Each is given the batches of the first."""
    shares: Sequence[int] = ()
    """Sequences of each in a step, in proportion to its speed; none: the race's batch for all."""
    late_steps: int = 0
    """So many steps after a round's end its outer step is taken; they train on meanwhile."""

    def settings(self, schedule: Schedule, before: int) -> OuterSettings:
        """Return how the outer step is taken after so many others."""
        first_step = before * self.every_steps
        steps = min(self.every_steps, schedule.steps - first_step)
        closed = OuterOrder(before, first_step=first_step, steps=steps)
        training = OuterTraining(schedule, 0, self.outer)
        return OuterSettings(*rate_and_momentum(training, closed, self.every_steps))


@dataclass(frozen=True)
class Result:
    """What came of islands."""

    bits_per_byte: float
    rounds: int
    equal_rounds: int
    """After which all islands had the same weights and momentum, to the bit."""
    sent_bytes: int
    """By one island."""


def apart(
    race: Race, engines: Sequence[EngineName], outer: Outer, told: Told = lambda _, __: None
) -> Result:
    """Train islands that exchange now and then."""
    count = len(engines)
    running = [race.engine(name) for name in engines]
    islands = [IslandView(engine, outer.kind) for engine in running]
    shares = tuple(outer.shares or [race.batch_sequences] * count)
    for engine, share in zip(running, shares, strict=True):
        engine.batch_sequences = share
    given = [race.given(shares, 0 if outer.same_batches else number) for number in range(count)]
    schedule = race.plan(1).schedule()
    exchanges = Exchanges(islands, replace(outer, shares=shares), schedule)
    for step in range(race.steps):
        cursor = step * sum(shares[: 1 if outer.same_batches else count])
        losses = [
            engine.step(list(batches.at(cursor, shares)), schedule.learning_rate(step))[0]
            for engine, batches in zip(running, given, strict=True)
        ]
        told(step, float(np.mean(losses)))
        exchanges.go_on(step + 1, is_last=step + 1 == race.steps)
    bits = race.text.bits_per_byte(running[0])
    return Result(bits, exchanges.rounds, exchanges.equal, exchanges.sent_bytes)


class Exchanges:
    """Those of islands, each as weighty as it has trained."""

    def __init__(self, islands: Sequence[IslandView], outer: Outer, schedule: Schedule) -> None:
        self._islands, self._outer, self._schedule = islands, outer, schedule
        self._ways: Sequence[Packed] = ()
        """Those under way."""
        self._due_step = 0
        self._taken = 0
        self.rounds = self.equal = self.sent_bytes = 0

    def go_on(self, step: int, *, is_last: bool) -> None:
        """Do what is due after so many steps."""
        if self._ways and (is_last or step >= self._due_step):
            self._take_outer_step()
        if is_last or step % self._outer.every_steps == 0:
            self._end_round(step)
            if is_last or not self._outer.late_steps:
                self._take_outer_step()

    def _end_round(self, step: int) -> None:
        """Let islands send their ways; what they train from now on is of the next round."""
        self._ways = [each.packer.packed(each.base - each.end()) for each in self._islands]
        self._due_step = step + self._outer.late_steps
        for island in self._islands:
            island.begin(RoundOrder("", 0, 0, 0, 0, ""))
        self.rounds += 1
        self.sent_bytes += self._ways[0].size_bytes * (len(self._islands) - 1)

    def _take_outer_step(self) -> None:
        settings = self._outer.settings(self._schedule, self._taken)
        self._taken += 1
        for island in self._islands:
            state = island.merged(self._ways, self._outer.shares, settings)
            island.take(state, goes_on=True)
        self._ways = ()
        self.equal += len({island.state.digest() for island in self._islands}) == 1
