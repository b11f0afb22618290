"""One rank's scores of the weights that its island merges, and what is decided by those of all.

Owns when the engine holds these weights. Doesn't know how they are scored (`outer_monitor`), or who
decides: that comes with the outer steps.
"""

from jupiterd.cycle.training.horizon import Horizon
from jupiterd.errors import Bug
from jupiterd.protocol.frames import OuterStepArrived
from jupiterd.protocol.training_values import RoundOrder
from jupiterd.workers.islands.island import IslandView
from jupiterd.workers.train.checkpoints.last_step_snapshot import LastStepSnapshot
from jupiterd.workers.train.held_out.outer_monitor import OuterMonitor
from jupiterd.workers.train.loop import Watch
from jupiterd.workers.train.report.run_report import RunReport


class MergedScores:
    """Those of one rank in one attempt; all ranks of an island take part in each."""

    def __init__(
        self, watch: Watch | None, island: IslandView, keeper: LastStepSnapshot, report: RunReport
    ) -> None:
        if not isinstance(watch, OuterMonitor):
            raise Bug("an island's watch is over merged weights")
        self.watch = watch
        self._island = island
        self._keeper = keeper
        self._report = report

    def take_up(self, arrived: OuterStepArrived, step: int) -> None:
        """Take up what an outer step that was taken says is decided, and score what it has merged.

        step: that the weights contain which are trained
        """
        before, horizon = self.watch.horizon, Horizon.of(arrived.horizon)
        self.watch.take_up(horizon)
        if self.watch.horizon != before and horizon != Horizon():
            self._report.decided(self.watch.horizon)
        if arrived.order.scored_step:
            self._score(arrived.order.scored_step, step)

    def score_again(self, order: RoundOrder, step: int) -> None:
        """Score what the last outer step has merged, if nobody has decided by it yet.

        Whoever was told of it before may be gone.
        """
        if order.scored_step > self.watch.horizon.step:
            self._score(order.scored_step, step)

    def end(self) -> None:
        """Take in the loss of the last weights of all."""
        before = self.watch.horizon
        self.watch.end()
        if self.watch.horizon != before:
            self._report.decided(self.watch.horizon)

    def _score(self, scored_step: int, step: int) -> None:
        with self._keeper.jumping(step), self._island.merged_weights():
            loss = self.watch.score(scored_step)
        if loss is not None:
            self._report.scored(scored_step, loss)
