"""Measures one rank's loss on development text, and decides by it when training ends.

Owns the present `Horizon` and the storing of the best weights. Doesn't know the rules
(`cycle.training.horizon`), or how a loss is computed (`validation`). All ranks measure after the
same steps, get the same number, and so decide the same.
"""

from collections.abc import Callable
from pathlib import Path

from jupiterd.cycle.training.batch_shares import Shares, shares_among
from jupiterd.cycle.training.held_out_measures import measure_interval, sequences_to_score
from jupiterd.cycle.training.horizon import Horizon, end_step, expected_steps, schedule
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.workers.train.checkpoints.best_weights import BestWeights
from jupiterd.workers.train.held_out.validation import Validation
from jupiterd.workers.training_engine import TrainingEngine


class HeldOutMonitor:
    """The monitor of one rank in one attempt."""

    def __init__(
        self,
        engine: TrainingEngine,
        plan: TrainPlan,
        validation: Validation,
        sequences: int,
        horizon: Horizon,
        best: BestWeights | None,
    ) -> None:
        """Begin with what was decided before.

        sequences: of the data
        best: None where they aren't kept
        """
        self._engine = engine
        self._plan = plan
        self._validation = validation
        self._best = best
        scored = sequences_to_score(sequences)
        self._interval = measure_interval(plan.steps, plan.batch_sequences, scored)
        self.horizon = horizon
        self.report_busy: Callable[[int], None] = lambda _: None
        """Called with the number of finished steps before text is scored after them."""
        self._best_before = _best_step(horizon)

    @property
    def end_step(self) -> int:
        """Return the number of the last step, as far as it is decided."""
        return end_step(self._plan, self.horizon)

    def expected_steps(self, step: int) -> int:
        """Return the total of steps that progress shows."""
        return expected_steps(self._plan, self.horizon, step)

    @property
    def schedule(self) -> Schedule:
        """Return the learning rate schedule, as far as it is decided."""
        return schedule(self._plan, self.horizon)

    def arrived(self, step: int, checkpoint: Path) -> None:
        """Adopt the best weights of a state that arrived after this rank began."""
        if self._best is not None:
            self._best.go_on(self._best_before, step, checkpoint)

    def best_file(self, step: int) -> Path | None:
        """Return the file of the best weights; None: the step's are, or they aren't here."""
        return None if self._best is None else self._best.file(_best_step(self.horizon), step)

    def lacks_best(self, step: int) -> bool:
        """Say whether a checkpoint of the step needs the best weights, and they aren't here."""
        return self._best is not None and self._best.lacks(_best_step(self.horizon), step)

    def measure_initial(self) -> float | None:
        """Return the held-out loss before the first step, in nats per token; None without text.

        The initial weights count as the best until a step has a lower loss.
        """
        loss = self._validation.loss(self._engine, self._equal_shares())
        if loss is None:
            return None
        validation = self._validation
        self.horizon = self.horizon.begun(
            loss, validation.bytes_per_token, may_decide=validation.may_decide
        )
        if self._best is not None and validation.may_decide:
            self._best.take(0, self._engine)
        return loss

    def _equal_shares(self) -> Shares:
        ranks = self._engine.world_size
        return shares_among(self._plan.batch_sequences, (True,) * ranks)

    def begin(self, step: int) -> None:
        """Measure the loss that was due after this step and that its writer didn't measure."""
        if step and self.horizon.step < step and self._is_due(step):
            self._measured(step, self._equal_shares(), is_whole=True)

    def after(self, step: int, shares: Shares, *, is_whole: bool = True) -> float | None:
        """Return the loss after a step; None where it isn't due, or there is no text for it.

        is_whole: this rank has the weights of the step
        """
        if not self._is_due(step):
            return None
        self.report_busy(step)
        return self._measured(step, shares, is_whole=is_whole)

    def _measured(self, step: int, shares: Shares, *, is_whole: bool) -> float | None:
        loss = self._validation.loss(self._engine, shares)
        counted = loss if self._validation.may_decide else None
        found = self.horizon.measured(self._plan, step, counted)
        if self._best is not None and counted is not None and found.best_step == step and is_whole:
            self._best.take(step, self._engine)
        self.horizon = found
        return loss

    def _is_due(self, step: int) -> bool:
        plan = self._plan
        is_place = plan.decides_after(step) or plan.is_compared_after(step)
        if step >= self.end_step or (is_place and plan.extends_by_steps):
            return True
        since = step - self.horizon.step
        return step % self._interval == 0 and since > self._interval // 2


def _best_step(horizon: Horizon) -> int | None:
    """Return the step with the best weights; 0: the initial ones; None: unknown."""
    return horizon.best_step if horizon.has_best else None
