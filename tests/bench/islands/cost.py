"""What an exchange takes of an island's processor, beside the steps of its round.

Owns this figure: time of the processor, which who else runs on the machine blurs less than the
clock's. In it is what `workers.train.pseudo_gradient_exchange` and `outer_rounds` do between two
rounds. What daemons take to carry the ways, and checkpoints, aren't.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.fixed_batch import FixedBatch
from jupiterd.workers.islands.held_vector import are_numbers, length
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.islands.pseudo_gradient_file import (
    read_pseudo_gradient,
    write_pseudo_gradient,
)
from tests.bench.islands.contestants import EngineName, Outer, Race
from tests.bench.islands.losses import verdict

STEPS, WARM_UP_STEPS = 20, 3
"""Of each round that is measured, and of those before: the first ones also prepare much."""

ROUNDS = 5
SHARE = 1.0
"""Per cent of a round; the rest is what islands that train on have, of what they do alone."""


@dataclass
class Clock:
    """Time of the processor, in all threads of this process."""

    total_s: float = 0.0

    @contextmanager
    def running(self) -> Generator[None]:
        """Count what it takes meanwhile."""
        began_s = time.process_time()
        yield
        self.total_s += time.process_time() - began_s


def print_cost(race: Race, every: int) -> None:
    """Train, and exchange between two islands, of which this one does its part.

    every: steps between two exchanges
    """
    for name in ("torch", "mlx"):
        step_s, exchange_s = _cost(race, name)
        share = 100 * exchange_s / (every * step_s + exchange_s)
        print(
            f"cost, {name}: an exchange takes {1e3 * exchange_s:.0f} ms of the processor, {every} "
            f"steps {every * step_s:.1f} s: {share:.2f} % of a round {verdict(share <= SHARE)} "
            f"(goal {SHARE:.0f})",
            flush=True,
        )


def _cost(race: Race, name: EngineName) -> tuple[float, float]:
    """Return the seconds of a step, and of an exchange."""
    engine, batches = race.engine(name), race.given([race.batch_sequences])
    rates = race.plan(1).schedule()
    island = IslandView(engine)
    steps, exchange = Clock(), Clock()

    def train(first: int, many: int) -> None:
        for step in range(first, first + many):
            engine.step(list(batches.at(step * race.batch_sequences)), rates.learning_rate(step))

    train(0, WARM_UP_STEPS)
    fixed = FixedBatch(engine, race.shape.seq_len)
    with TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            with steps.running():
                train(WARM_UP_STEPS + number * STEPS, STEPS)
            with exchange.running():
                _exchange(island, fixed, race, Path(folder) / f"way-{number}")
    return steps.total_s / (ROUNDS * STEPS), exchange.total_s / ROUNDS


def _exchange(island: IslandView, fixed: FixedBatch, race: Race, folder: Path) -> None:
    """Send a way, and merge it with that of another island, here the same."""
    weights = island.end()
    assert are_numbers(weights)
    way = island.base - weights
    assert length(way) > 0.0
    write_pseudo_gradient(folder, island.packer.packed(way))
    island.begin(RoundOrder("", 0, 0, 0, 0, ""))
    ways = (read_pseudo_gradient(folder, island.layout.size) for _ in range(2))
    settings = Outer(STEPS).settings(race.plan(1).schedule(), 1)
    state = island.merged(ways, [1, 1], settings)
    state.digest()
    island.take(state, goes_on=True)
    fixed.pass_through(folder.name, island.layout.tensors(island.state.weights))
