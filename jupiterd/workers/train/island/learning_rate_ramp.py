"""The learning rate of an island whose optimizer knows nothing yet, in the middle of a run.

Owns when it is raised bit by bit, and its form in a checkpoint. Doesn't know why nothing is known:
an island that begins with the first weights and takes all outer steps at once, or forgets moments
that were no numbers. Whoever goes on from a checkpoint, its own or another island's, has moments.

A joiner's rate rises over 50 steps (DiLoCo's recipe for fresh optimizers), and no further than to
the end of its first round. The curve of the run stays that of the global step.
"""

from collections.abc import Sequence

from jupiterd.cycle.training.schedule import Ramp
from jupiterd.workers.islands.sound_moments import sound_moments
from jupiterd.workers.training_engine import TrainingEngine

RAMP_STEPS = 50


class LearningRateRamp:
    """That of one rank; all ranks of its island have the same.

    saved: what a checkpoint has of it; nothing where no rate is being raised
    is_fresh: the optimizer has never taken a step
    """

    def __init__(self, saved: Sequence[int] = (), *, is_fresh: bool = False) -> None:
        first_step, steps = saved or (0, 0)
        self._ramp = Ramp(first_step, steps) if steps else None
        self._is_fresh = is_fresh or (bool(saved) and not steps)

    def forget(self) -> None:
        """Take in that the optimizer knows nothing any more."""
        self._is_fresh = True

    def begin(self, engine: TrainingEngine, step: int, end_step: int) -> None:
        """Raise the rate from this step on, if the optimizer knows nothing.

        It takes the step's number: so it goes on from a checkpoint as it would have without.
        """
        if self._is_fresh and step:
            is_whole = engine.partition is None  # else nobody has room for all of them
            engine.load_moments(engine.moments() if is_whole else sound_moments(engine), step)
            self._ramp = Ramp(step, min(RAMP_STEPS, end_step - step))
        self._is_fresh = False

    def factor(self, step: int) -> float:
        """Return what the learning rate of a step (from 0) is multiplied by."""
        return 1.0 if self._ramp is None else self._ramp.factor(step)

    def at(self, step: int) -> Sequence[int]:
        """Return what a checkpoint after so many steps has of it: its first step and its length.

        The length is 0 where the optimizer knows nothing, and hasn't been used since.
        """
        if self._is_fresh and step:
            return (step, 0)
        ramp = self._ramp
        return () if ramp is None or ramp.is_over(step) else (ramp.first_step, ramp.steps)
