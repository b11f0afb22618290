"""The islands of one run or round: who trains, who is gone, and who has a part in the next round.

Owns that view of them. Doesn't know what an outer step is, or when islands are recorded
(`island_coordinator`).
"""

from collections.abc import Collection, Mapping, Sequence

from jupiterd.cluster.facts.facts import OuterStepTaken, TrainingStarted
from jupiterd.cluster.ledger.cycle_state import STOPPED, CycleState
from jupiterd.cluster.ledger.island_runs import islands_in
from jupiterd.cluster.planning.engines import ranks_of
from jupiterd.cluster.planning.island_nodes import read
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.islands.island_speeds import speeds_before
from jupiterd.cycle.islands.outer_orders import Member
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.daemon.leader.island_progress import OUTER_STEP
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.leader.pseudo_gradients import PseudoGradients
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.planning.training_spec import TrainingSpec
from jupiterd.errors import from_wire
from jupiterd.ids import CycleId
from jupiterd.protocol.training_values import PseudoGradient


class IslandRoster:
    """The islands of one training, as the ledger and their gangs' reports show them."""

    def __init__(
        self,
        term: Term,
        machines: Machines,
        board: ProgressBoard,
        pseudo_gradients: PseudoGradients,
        of: TrainingSpec,
    ) -> None:
        self._term, self._machines, self._board = term, machines, board
        self._pseudo_gradients = pseudo_gradients
        self._of = of

    @property
    def state(self) -> CycleState:
        """The state of the run that the islands train."""
        return self._term.cycle(self._of.started.cycle)

    @property
    def branch(self) -> Mapping[str, OuterStepTaken]:
        """The outer steps of the round that count, by hash."""
        return self.state.outer_branch(self._of.round)

    def all(self) -> dict[CycleId, tuple[CycleState, TrainingStarted]]:
        """Return the state and the start of each island."""
        found = islands_in(self._term.state.cycles, self._of.started.cycle, self._of.round)
        return {started.cycle: (state, started) for state, started in found}

    def started(self) -> list[TrainingStarted]:
        """Return the start of each island."""
        return [started for _, started in self.all().values()]

    def planned(self) -> int:
        """Return how many islands there were at the beginning."""
        first = next(iter(self.branch.values()), None)
        return len(read(self._of.settings.island_nodes) if first is None else first.batches)

    def has_ended(self, island: CycleId) -> bool:
        """Say whether an island has failed or was stopped."""
        state, _ = self.all()[island]
        return state.failed is not None or state.wanted == STOPPED

    def is_gone(self, island: CycleId) -> bool:
        """Say whether an island has ended, or none of its machines is alive."""
        _, started = self.all()[island]
        return self.has_ended(island) or not self._machines.alive() & {*started.nodes}

    def is_any_at_work(self) -> bool:
        """Say whether any island may yet finish by itself."""
        islands = self.all().items()
        return any(
            not (state.has_nothing_to_do or self.is_gone(each)) for each, (state, _) in islands
        )

    def taking_part(
        self, taken: OuterStepTaken, closing: Closing, received: Mapping[str, PseudoGradient]
    ) -> list[CycleId]:
        """Return who has a part in the next round; who is adrift is reseeded first."""
        sound = self.all().keys() - {*closing.adrift}
        return sorted(each for each in sound if self._takes_part(each, taken, received))

    def _takes_part(
        self, island: CycleId, taken: OuterStepTaken, received: Mapping[str, PseudoGradient]
    ) -> bool:
        """Say whether an island has a part in the next round: it trains, as far as we know.

        One that hasn't caught up has none: all others would wait for it, round after round.
        """
        reached = self._board.reading(island, Phase.TRAIN, OUTER_STEP)
        has_caught_up = reached is not None and reached >= taken.number
        is_at_work = self._pseudo_gradients.is_training(island) and has_caught_up
        return (island in received or is_at_work) and not self.is_gone(island)

    def lost(self, taken: OuterStepTaken) -> list[CycleId]:
        """Return which islands of a round are gone just now.

        Raises:
            JupiterError: the islands have failed, all of them; it is the last one's error.
        """
        self.check_any_left()
        return [each for each in map(CycleId, taken.batches) if self.is_gone(each)]

    def check_any_left(self) -> None:
        """Check that not all islands have failed.

        Raises:
            JupiterError: they have; it is the last one's error.
        """
        states = [state for state, _ in self.all().values()]
        failed = [state.failed for state in states if state.wanted != STOPPED]
        if failed and all(failed):
            last = failed[-1]
            if last is not None:
                raise from_wire(last.code, last.message, last.hint)

    def members(self, islands: Sequence[TrainingStarted], speeds: Sequence[float]) -> list[Member]:
        """Return who takes part; parts are cut where a step has fewer sequences than ranks.

        speeds: tokens per second of each island; 0 where it isn't known
        """
        ranks = [*map(self._ranks, islands)]
        batch = self._of.plan.batch_sequences
        most = batch if sum(ranks) <= batch else max(1, batch // len(ranks))
        return [
            Member(started.cycle, min(many, most), speed)
            for started, many, speed in zip(islands, ranks, speeds, strict=True)
        ]

    def _ranks(self, started: TrainingStarted) -> int:
        machines = map(self._machines.hardware_of, started.nodes)
        return sum(1 if each is None else ranks_of(each, started.engine) for each in machines)

    def speeds(
        self,
        there: Collection[CycleId],
        taken: OuterStepTaken,
        received: Mapping[str, PseudoGradient],
    ) -> Mapping[str, float]:
        """Return tokens per second of each island, as measured, or known from before."""
        known = {each: report.tokens_per_s for each, report in received.items()}
        measured = {each: speed for each, speed in known.items() if speed > 0}
        away = {*there} - taken.batches.keys()
        rounds = [step.batches for step in reversed([*self.branch.values()])]
        return measured | speeds_before(away, measured, rounds)
