"""What people are shown of outer rounds: how far they are, and what each island does.

Owns these words and values. Doesn't know how a round closes, or what follows from it.
"""

import logging
from collections.abc import Mapping

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.planning.outer_throughput import of_all
from jupiterd.cluster.planning.predicted_throughput import newest
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.daemon.islands.island_roster import IslandRoster
from jupiterd.daemon.islands.outer_decisions import shown_decisions
from jupiterd.daemon.islands.outer_round_collection import OuterRoundCollection
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.ids import CycleId

log = logging.getLogger(__name__)

NEWEST = 5
"""Outer steps whose mean speed is shown."""

TRAINING, IN, STARTING, AWAY, FAILED = "training", "in", "starting", "away", "failed"
"""What an island does: `in` is one that waits for the others, with its part of the round done."""


class OuterProgress:
    """Shows the outer rounds of one training on the leader's board."""

    def __init__(
        self,
        board: ProgressBoard,
        roster: IslandRoster,
        pseudo_gradients: PseudoGradients,
        of: TrainingSpec,
    ) -> None:
        self._board, self._roster = board, roster
        self._pseudo_gradients = pseudo_gradients
        self._of, self._run = of, of.started.cycle

    def gathering(
        self, taken: OuterStepTaken, last: OuterStepTaken, collection: OuterRoundCollection
    ) -> None:
        """Show where the round is, and who has come in while others are waited for.

        Args:
            taken: the outer step that ordered the round.
            last: the newest outer step.
            collection: what has come in.
        """
        many, missing = len(taken.batches), collection.missing
        if collection.pseudo_gradients and missing:
            text = f"outer step {last.number + 1}: {many - len(missing)} of {many} islands are in"
            self._board.explain(self._run, text)
        states = {each: self._state_of(each, taken, collection) for each in self._roster.all()}
        self._show(taken, last, states)

    def finishing(self, taken: OuterStepTaken) -> None:
        """Show that the islands write the weights of the last outer step."""
        self._show(taken, taken, dict.fromkeys(self._roster.all(), TRAINING))

    def stepped(self, number: int, closing: Closing) -> None:
        """Show and log that an outer step was taken, and whose weights count in it."""
        left_out = {"missing": len(closing.missing), "quarantined": len(closing.quarantined)}
        left_out |= {"strangers": len(closing.strangers), "adrift": len(closing.adrift)}
        extra = {"run": self._run, "number": number, "counted": len(closing.counted)}
        log.info("outer_step_taken", extra=extra | left_out)
        self._board.explain(self._run, summary(number, closing))

    def _show(
        self, taken: OuterStepTaken, last: OuterStepTaken, states: Mapping[CycleId, str]
    ) -> None:
        branch = self._roster.branch
        outer = {
            "number": last.number,
            "states": states,
            "first_step": taken.first_step,
            **shown_decisions(self._of, last),
            "tokens": last.total_tokens,
            "step_tokens": self._of.plan.batch_sequences * self._of.shape.seq_len,
            "tokens_per_s": of_all(branch, NEWEST).tokens_per_s,
            "predicted_tokens_per_s": newest([*branch.values()]),
        }
        self._board.note(self._run, {"outer": outer})

    def _state_of(
        self, island: CycleId, taken: OuterStepTaken, collection: OuterRoundCollection
    ) -> str:
        """Return what an island does just now, in a word."""
        state, _ = self._roster.all()[island]
        if state.failed is not None:
            return FAILED
        if self._roster.is_gone(island):
            return AWAY
        if island in collection.pseudo_gradients:
            return IN
        is_at_work = self._pseudo_gradients.is_training(island)
        return TRAINING if is_at_work and island in taken.batches else STARTING


def summary(number: int, closing: Closing) -> str:
    """Return how an outer round ended, for people."""
    others = {
        "missing": len(closing.missing),
        "left out": len(closing.quarantined),
        "not let in": len(closing.strangers),
        "adrift": len(closing.adrift),
    }
    many = len(closing.counted) + sum(others.values())
    rest = [f"{_counted(count)} {what}" for what, count in others.items() if count]
    counted = len(closing.counted)
    all_islands = f"{counted} of {many} islands" if rest else _islands_in_words(counted)
    return f"outer step {number}: {', '.join([all_islands, *rest])}"


def _counted(count: int) -> str:
    return "one is" if count == 1 else f"{count} are"


def _islands_in_words(count: int) -> str:
    return "one island" if count == 1 else f"{count} islands"
