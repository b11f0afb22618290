"""A gang on the board of the leader's progress, where status shows it.

Owns what is put there. Doesn't know how a gang is formed or followed.
"""

from collections.abc import Mapping

from jupiterd.cluster.planning.predicted_throughput import PREDICTED
from jupiterd.cycle.training.memory import flops_per_token
from jupiterd.daemon.gangs.rank_orders import RankOrders
from jupiterd.daemon.leader.progress_board import FLOPS_PER_TOKEN, PEAK, ProgressBoard
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import CycleId
from jupiterd.protocol.frames import Preparing, Progressed
from jupiterd.protocol.preparing_stage import STAGES


class GangProgress:
    """The gang of one cycle, or of one island, as people see it."""

    def __init__(self, board: ProgressBoard, cycle: CycleId, orders: RankOrders) -> None:
        self._board = board
        self._cycle = cycle
        self._orders = orders
        self._preparing: dict[int, tuple[Preparing, float]] = {}
        """Rank -> its stage before its first step, and when it was told."""

    def begin(self, gang_plan: GangPlan) -> None:
        """Show a gang that is about to train, or is followed from now on."""
        board, trained = self._board, self._orders.trained_round
        self._preparing.clear()
        board.prepare(self._cycle, None)
        board.restart_rate(self._cycle)
        board.show_gang(self._cycle, self._ranks(gang_plan), {})
        board.note(
            self._cycle,
            {
                PREDICTED: gang_plan.predicted_tokens_per_s or None,
                "attempt": gang_plan.attempt,
                "resumed_from_step": gang_plan.from_step,
                FLOPS_PER_TOKEN: float(
                    flops_per_token(trained.shape, trained.plan.options.adapter)
                ),
                PEAK: self._orders.peak(gang_plan),
            },
        )

    def workers(self, workers: Mapping[int, Mapping[str, object]]) -> None:
        """Show what is new of some ranks."""
        self._board.restart_rate(self._cycle)
        self._board.show_gang(self._cycle, [], workers)

    def prepares(self, rank: int, stage: Preparing) -> None:
        """Show what the ranks do before their first step: what is last of them, others wait."""
        before = self._preparing.get(rank)
        goes_on = before is not None and before[0].stage == stage.stage  # only a detail is new
        self._preparing[rank] = (stage, before[1] if before is not None and goes_on else now_s())
        latest = min(self._preparing.values(), key=lambda told: STAGES.index(told[0].stage))
        self._board.prepare(self._cycle, *latest)

    def stepped(self, rank: int, event: Progressed) -> None:
        """Show how far a rank is, and how fast it is itself."""
        own = event.values.get("rank_tokens_per_s")
        self._board.stepped(self._cycle, rank, event.done, own)

    def advance(self, event: Progressed) -> None:
        """Show how far the gang is, as rank 0 reports it."""
        self._preparing.clear()
        self._board.prepare(self._cycle, None)
        self._board.advance(self._cycle, "train", event, now_s())

    def explain(self, detail: str) -> None:
        """Show a sentence about the gang; an empty one takes the last one back."""
        self._board.explain(self._cycle, detail)

    def _ranks(self, gang_plan: GangPlan) -> list[dict[str, object]]:
        cut = None if gang_plan.partition is None else gang_plan.partition.partition
        return [
            {
                **({} if cut is None else {"part": round(cut.share(rank), 4)}),
                "node": node,
                "rank": rank,
                "engine": gang_plan.choice.label,
                "device": self._orders.device(gang_plan, rank),
                "pid": None,
                "step": None,
                "step_lag": None,
                "tokens_per_s": None,
            }
            for rank, node in enumerate(gang_plan.gang)
        ]
