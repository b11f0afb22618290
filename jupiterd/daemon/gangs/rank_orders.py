"""What the members of a gang are told to run in an attempt: its ranks.

Owns the orders and what each rank must know. Doesn't know when they are given, or followed.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cluster.planning.engines import MLX
from jupiterd.cluster.planning.rank_placement import CPU, CUDA, device_of, place_of
from jupiterd.cluster.training import tunnel_plan
from jupiterd.cluster.training.asked_partition import memory_limits
from jupiterd.cluster.training.memory_limits import MemoryLimits
from jupiterd.cluster.training.tunnel_plan import GANG_ENCRYPTION, TunnelPlan, is_encrypted
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.runs.recorded_settings import OF_TUNING
from jupiterd.cycle.training.peak_flops import peak_flops_per_s
from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.daemon.executor import deferred_inputs
from jupiterd.daemon.executor.curve_paths import NUMBER
from jupiterd.daemon.gangs.rendezvous import Rendezvous
from jupiterd.daemon.leader.artifact_reach import ArtifactReach
from jupiterd.daemon.leader.machines import Machines
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.leader.work_calls import WorkCalls
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.node_micro_batch import plan_on
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import JupiterError
from jupiterd.ids import ArtifactId, NodeId, short

log = logging.getLogger(__name__)

_Seat = tuple[Hardware | None, str]
"""A rank's machine, as far as it is known, and its device, such as `cuda:0`."""

TASKS = {MLX: "train_mlx"}
"""The worker task of an engine; `train` for any other."""


@dataclass(frozen=True)
class RankOrders:
    """The orders of one round's attempts."""

    term: Term
    machines: Machines
    reach: ArtifactReach
    calls: WorkCalls
    trained_round: TrainedRound

    def all(self, gang_plan: GangPlan) -> Sequence[tuple[NodeId, WorkOrder]]:
        """Return what runs in an attempt, and where: its ranks."""
        return [(node, self.rank(gang_plan, rank)) for rank, node in enumerate(gang_plan.gang)]

    def rank(self, gang_plan: GangPlan, rank: int) -> WorkOrder:
        """Return a rank's order, without what it must know."""
        return self._order(gang_plan, f"/{rank}", TASKS.get(gang_plan.choice.engine, "train"))

    def store(self, gang_plan: GangPlan) -> str:
        """Return the name of the store where its ranks meet: no other attempt's."""
        return f"{self.trained_round.cycle}/r{self.trained_round.round}/{gang_plan.attempt}"

    def params(self, gang_plan: GangPlan, meeting: Rendezvous, rank: int) -> dict[str, object]:
        """Return what a rank must know."""
        return {
            **asdict(place_of(gang_plan.gang, rank)),
            "device": self.device(gang_plan, rank),
            "backend": gang_plan.choice.backend,
            "shape": self.trained_round.shape.to_plain(),
            "plan": self._plan(gang_plan, rank).to_plain(),
            "round": self._round_of_data,
            "rank": rank,
            "members": self._names(gang_plan),
            "world_size": len(gang_plan.gang),
            "micro_batch_sequences": gang_plan.micro_batches[rank],
            "epoch": gang_plan.attempt,
            "from_step": gang_plan.from_step,
            "from_checkpoint": gang_plan.from_checkpoint,
            "gang_peak": self.peak(gang_plan),
            "from_loss": self._loss_at(gang_plan.from_checkpoint),
            "horizon": self._horizon_at(gang_plan.from_checkpoint),
            "is_tuning": self.asked("recipe") == OF_TUNING,
            "late_ranks": list(gang_plan.late_ranks),
            deferred_inputs.PARAM: [deferred_inputs.STATE] if rank in gang_plan.late_ranks else [],
            "engine": gang_plan.choice.engine,
            **meeting.params(gang_plan.gang[rank]),
            **self._tunnels(gang_plan, meeting),
            **self._of_island(),
            **({} if gang_plan.partition is None else gang_plan.partition.to_order()),
        }

    def _plan(self, gang_plan: GangPlan, rank: int) -> TrainPlan:
        """Return the plan with the micro batch that fills a rank's device, as far as is known.

        Where ranks hold a part of the model each, all compute as it was planned.
        """
        if gang_plan.partition is not None and gang_plan.partition.plan is not None:
            return gang_plan.partition.plan
        node, trained = gang_plan.gang[rank], self.trained_round
        machine, limits = self.machines.hardware_of(node), self._limits
        most_bytes = limits.get(node, 0) // gang_plan.gang.count(node)
        engine = gang_plan.choice.engine
        return plan_on(engine, machine, trained.shape, trained.plan, most_bytes)

    @property
    def _limits(self) -> MemoryLimits:
        return memory_limits(self.term.cycle(self.trained_round.cycle))

    def _tunnels(self, gang_plan: GangPlan, meeting: Rendezvous) -> dict[str, object]:
        """Return which tunnels the ranks talk through, where people asked for that."""
        if not is_encrypted({GANG_ENCRYPTION: self.asked(GANG_ENCRYPTION)}, gang_plan.nodes):
            return {}
        return {tunnel_plan.PARAM: TunnelPlan(gang_plan.gang, meeting.hosts).to_plain()}

    def _of_island(self) -> dict[str, object]:
        """Return what only an island's ranks are told: where their outer steps come from."""
        started = (
            self.term.cycle(self.trained_round.cycle).training
            if self.trained_round.parent
            else None
        )
        if started is None:
            return {}
        values = {
            "run": self.trained_round.parent,
            "round": self._round_of_data,
            "island": self.trained_round.cycle,
            NUMBER: number_of(started),
            "kind": self.asked("ways") or "int8",
        }
        return {"island": values}

    @property
    def _round_of_data(self) -> int:
        """Return the round whose data is trained on: an island's run has one of its own."""
        training = (
            self.term.cycle(self.trained_round.cycle).training
            if self.trained_round.parent
            else None
        )
        return self.trained_round.round if training is None else training.parent_round

    async def inputs(self, step: TrainRound, gang_plan: GangPlan) -> dict[str, ArtifactId]:
        """Bring what the ranks need to this node, and return it by name.

        Raises:
            JupiterError: something of it can't be had; what was held out may be missing.
        """
        inputs = {"shards": step.shards, "tokenizer": step.tokenizer}
        if gang_plan.from_checkpoint:
            inputs["checkpoint"] = ArtifactId(gang_plan.from_checkpoint)
        first, is_base = self.asked("start_from"), bool(self.asked("lora"))
        if first and (is_base or not gang_plan.from_checkpoint):
            inputs["weights"] = ArtifactId(first)
        if (adapter := self.asked("adapter_from")) and not gang_plan.from_checkpoint:
            inputs["adapter"] = ArtifactId(adapter)
        for artifact in inputs.values():
            await self.reach.fetch(artifact)
        for number, artifact in enumerate(step.held_out):
            try:
                await self.reach.fetch(artifact)
            except JupiterError as error:
                log.warning("no_validation_loss", extra={"reason": error.message})
            else:
                inputs[f"holdout.{number}"] = artifact
        return inputs

    async def spread(self, inputs: Mapping[str, ArtifactId], gang_plan: GangPlan) -> None:
        """Bring the inputs to the members, but for the state to those that fetch it later."""
        others = [node for node in gang_plan.nodes if node != self.term.self_id]
        await self.reach.artifact_cache.spread(deferred_inputs.at_once(inputs), others)
        if (state := inputs.get(deferred_inputs.STATE)) is not None:
            in_time = [node for node in others if node not in gang_plan.late]
            await self.reach.artifact_cache.spread([state], in_time)

    def asked(self, setting: str) -> str:
        """Return what people asked of a training run or a cycle; empty where they didn't say."""
        state = self.term.cycle(self.trained_round.cycle)
        asked = state.training or state.started
        return "" if asked is None else str(asked.settings.get(setting) or "")

    def _loss_at(self, checkpoint: str) -> float:
        known = self.term.cycle(self.trained_round.cycle).checkpoint(checkpoint)
        return 0.0 if known is None else known.loss

    def _horizon_at(self, checkpoint: str) -> Mapping[str, float]:
        """Return what was decided by a checkpoint of this round: of an earlier one nothing."""
        known = self.term.cycle(self.trained_round.cycle).checkpoint(checkpoint)
        is_of_this = known is not None and known.round == self.trained_round.round
        return dict(known.horizon) if known is not None and is_of_this else {}

    def _names(self, gang_plan: GangPlan) -> list[str]:
        """Return the name of each rank's node, for what ranks say of each other."""
        names = self.machines.names()
        return [names.get(node, short(node)) for node in gang_plan.gang]

    def device(self, gang_plan: GangPlan, rank: int) -> str:
        """Return where a rank computes; MLX chooses by itself, and says so once it runs."""
        if gang_plan.choice.engine == MLX:
            return CPU
        hardware = self.machines.hardware_of(gang_plan.gang[rank])
        return device_of(hardware, place_of(gang_plan.gang, rank).local_rank)

    def peak(self, gang_plan: GangPlan) -> float | None:
        """Return what the gang's devices can do together at best; None where nobody knows."""
        machines = map(self.machines.hardware_of, gang_plan.gang)
        devices = [self.device(gang_plan, rank) for rank in range(len(gang_plan.gang))]
        return _peak_of_gang(zip(machines, devices, strict=True))

    def _order(self, gang_plan: GangPlan, part: str, task: str) -> WorkOrder:
        name = f"r{self.trained_round.round}/train/{gang_plan.attempt}{part}"
        return replace(
            self.calls.order(self.trained_round.cycle, name, task, {}), attempt=gang_plan.attempt
        )


def _peak_of_gang(seats: Iterable[_Seat]) -> float | None:
    """Return the peak in operations per second; None where that of one rank isn't known."""
    peaks = [_peak(machine, device) for machine, device in seats]
    known = [peak for peak in peaks if peak is not None]
    return sum(known) if known and len(known) == len(peaks) else None


def _peak(machine: Hardware | None, device: str) -> float | None:
    kind, _, number = device.partition(":")
    if machine is None or kind != CUDA or not number.isdecimal():
        return None
    gpus = [gpu for gpu in machine.gpus if gpu.kind == CUDA]
    return peak_flops_per_s(gpus[int(number)].name) if int(number) < len(gpus) else None
