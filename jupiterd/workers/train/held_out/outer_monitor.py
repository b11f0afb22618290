"""An island's watch over the loss on development text: of merged weights, after outer steps.

Owns what it has scored, and the weights of these. Doesn't decide anything by itself: what is
decided comes with the next outer steps, the same on all islands. Only of the last one, which nobody
decides about any more, each takes in its own loss.
"""

from pathlib import Path

from jupiterd.cycle.training.batch_shares import shares_among
from jupiterd.cycle.training.horizon import Horizon
from jupiterd.workers.train.held_out.held_out_monitor import HeldOutMonitor

IN_NO_STEP = -1
"""A checkpoint's own weights are never the best: these are merged, and lie beside them."""


class OuterMonitor(HeldOutMonitor):
    """The watch of one rank in one attempt; all ranks of an island score together."""

    scored_step = 0
    """Steps that the weights contain that were scored last."""
    held_out = 0.0
    """Their loss; 0: there is no text that may decide."""

    def after(self, *_: object, **__: object) -> float | None:
        """Return that nothing is measured between outer steps."""
        return None

    def arrived(self, step: int, checkpoint: Path) -> None:  # noqa: ARG002 - its own never are
        """Take up the best weights of a state that this rank began without."""
        super().arrived(IN_NO_STEP, checkpoint)

    def best_file(self, step: int) -> Path | None:
        """Return where the best weights lie, where they are here, and aren't those of the end."""
        best = self.horizon.best_step if self.horizon.has_best else None
        at_end = step if step >= self.end_step else IN_NO_STEP
        return None if self._best is None else self._best.file(best, at_end)

    def lacks_best(self, step: int) -> bool:  # noqa: ARG002 - of none
        """Say that any state may be written down: another island has the best weights, too."""
        return False

    def take_up(self, horizon: Horizon) -> None:
        """Take up what all islands go by from now on; what the weights were before stays known."""
        first, per_token = self.horizon.first_loss, self.horizon.bytes_per_token
        if first and not horizon.first_loss:
            may_decide = self._validation.may_decide
            horizon = horizon.begun(first, per_token, may_decide=may_decide)
        self.horizon = horizon

    def score(self, step: int) -> float | None:
        """Return the loss of the weights that the engine has now; they are kept, as a candidate.

        step: that they contain
        """
        shares = shares_among(self._plan.batch_sequences, (True,) * self._engine.world_size)
        loss = self._validation.loss(self._engine, shares)
        counted = loss if loss is not None and self._validation.may_decide else None
        if self._best is not None and counted is not None:
            self._best.take(step, self._engine, self.horizon.best_step)
        self.scored_step, self.held_out = step, counted or 0.0
        return loss

    def end(self) -> None:
        """Take in what was scored last, of which nobody else decides any more."""
        if self.held_out and self.horizon.step < self.scored_step:
            self.horizon = self.horizon.with_loss(self.scored_step, self.held_out)
