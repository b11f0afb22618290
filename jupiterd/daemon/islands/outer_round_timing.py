"""How long the rounds of islands take, as a leader sees it, and what is exchanged in them.

Owns the clock of one leader: how long a round took that was open when another one led, nobody says.
"""

from collections.abc import Mapping
from dataclasses import replace

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.training.sync_interval import EndedRound
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.protocol.training_values import PseudoGradient


class OuterRoundTiming:
    """The times of one line of outer steps."""

    def __init__(self) -> None:
        self._last, self._at_s = "", 0.0
        """The last step that this leader has taken, and when."""

    def ended(
        self,
        newest: str,
        taken: OuterStepTaken,
        closing: Closing,
        pseudo_gradients: Mapping[str, PseudoGradient],
    ) -> EndedRound | None:
        """Return what a round that ends now tells of exchanges.

        None where it tells nothing: it was the first, or islands were waited for in vain, or
        another leader has seen a part of it.

        Args:
            newest: hash of the last step that was taken.
            taken: the one that ordered the round.
            closing: how the round ends.
            pseudo_gradients: of those who are in.
        """
        is_first, elapsed_s = taken.number < taken.lag, self._since(newest, now_s())
        times_s = [pseudo_gradient.elapsed_s for pseudo_gradient in pseudo_gradients.values()]
        if is_first or closing.missing or not elapsed_s or not all(times_s):
            return None
        return EndedRound(taken.steps, max(times_s), elapsed_s)

    def timed(
        self, step: OuterStepTaken, pseudo_gradients: Mapping[str, PseudoGradient]
    ) -> OuterStepTaken:
        """Return a step that is taken now, with the times and sizes of its pseudo-gradients."""
        at_s = now_s()
        timed_step = replace(
            step,
            elapsed_s=round(self._since(step.parent, at_s), 3),
            trained_s={each: round(pseudo_gradients[each].elapsed_s, 3) for each in step.islands},
            pseudo_gradient_bytes={
                e: pseudo_gradients[e].size_bytes
                for e in step.islands
                if pseudo_gradients[e].size_bytes
            },
        )
        self._last, self._at_s = fact_hash(timed_step), at_s
        return timed_step

    def _since(self, step: str, at_s: float) -> float:
        """Return how long ago a step was taken, by its hash; 0 where we don't know."""
        return at_s - self._at_s if step and step == self._last else 0.0
