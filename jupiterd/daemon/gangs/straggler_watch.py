"""Whom a gang trains faster without, by what its ranks do: it is let go of, and people read why.

Owns one round's knowledge of speeds under one leader, and showing why a machine doesn't train.
Doesn't know the rule (`cluster.training.stragglers`), or how a gang is stopped and formed
anew (`gang_rescaling`). An island's machines were chosen with the islands: none is let go of there.
Nor is one where people have said that the model may be cut: all memory counts then.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from statistics import median

from jupiterd.cluster.training.asked_partition import asked_shard
from jupiterd.cluster.training.named_trainers import named_trainers
from jupiterd.cluster.training.speed_estimate import SpeedEstimate
from jupiterd.cluster.training.stragglers import (
    Exchange,
    GangMembers,
    computing_s,
    worth_starting_with,
)
from jupiterd.cycle.training.memory import flops_per_token
from jupiterd.daemon.leader.progress_board import LET_GO, MAX_DETAIL_CHARACTERS
from jupiterd.daemon.leader.term_services import TrainingServices
from jupiterd.daemon.planning.device_speed import guessed_flops_per_s
from jupiterd.daemon.planning.exchange_times import exchange_times
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.daemon.runtime.clock import now_s
from jupiterd.ids import NodeId
from jupiterd.protocol.frames import Progressed

log = logging.getLogger(__name__)

GUESS_DEVIATION = 1.0
"""Of the logarithm of what the guess from a device's class is off by: a factor of seven at most."""

WARM_UP_STEPS = 3
"""The first steps of an attempt compile, and tell nothing of a machine."""

CHANGE_S = 30.0
"""Going on with another gang takes up to five seconds, and may be taken back: it must save so much
in what is to be trained yet."""

AGAIN_S = 900.0
"""After so long a machine that was let go of is looked at as if nothing were known of it."""


class StragglerWatch:
    """The members of one round's gangs, and who had better generate."""

    def __init__(self, services: TrainingServices, trained_round: TrainedRound) -> None:
        self._services, self._trained_round = services, trained_round
        self._gang_plan: GangPlan | None = None
        self._rule: GangMembers | None = None
        self._exchange: Exchange = lambda _: 0.0
        self._exchange_factor = self._unit = 1.0
        self._is_calibrated = False
        self._rates: dict[int, float] = {}
        self._tokens_per_s = 0.0
        self._let_go: dict[NodeId, str] = {}
        self._again_at_s: dict[NodeId, float] = {}

    @property
    def let_go(self) -> frozenset[NodeId]:
        """Return who isn't to train as long as others can."""
        return frozenset(self._let_go)

    def leaving(self) -> Mapping[NodeId, str]:
        """Return the members that are let go of, each with the reason."""
        gang = () if self._gang_plan is None else self._gang_plan.gang
        return {node: why for node, why in self._let_go.items() if node in gang}

    def consider(self, engine: str, nodes: AbstractSet[NodeId]) -> bool:
        """Look at machines that could train; return whether one is let go of, which is news."""
        if self._keeps_all:
            return False
        self._look_again()
        before, kept = self.let_go, self._worth_it(engine, nodes)
        for node in nodes - kept - self._wanted() - before:
            self._release(node, "it is guessed to be too slow to train beside the others")
        return self.let_go > before

    def begin(self, gang_plan: GangPlan) -> None:
        """Take in that an attempt begins; whoever is a member isn't let go of."""
        self._gang_plan, self._rates = gang_plan, {}
        if self._keeps_all:
            return
        members = frozenset(gang_plan.gang)
        self._worth_it(gang_plan.choice.engine, members)
        for node in members:
            self._take_back(node)
        self._exchange = exchange_times(
            self._services.connectivity,
            sorted(members | self.let_go),
            self._trained_round.shape,
            self._trained_round.plan,
        )
        if self._rule is not None:
            for node in self._rule.known - members - self.let_go:
                self._rule.forget(node)
            self._rule.begin(members)

    def end(self) -> None:
        """Forget who was let go of: the round is over."""
        self._let_go.clear()
        self._show()

    def stepped(self, rank: int, event: Progressed) -> None:
        """Take in what a rank has done in a step."""
        gang_plan, rate = self._gang_plan, event.values.get("rank_sequences_per_s")
        if gang_plan is None or self._rule is None or not rate:
            return
        self._rates[rank] = rate
        if rank == 0:
            self._tokens_per_s = event.values.get("tokens_per_s", 0.0)
        if len(self._rates) < len(gang_plan.gang):
            return
        rates = self._rates_of_nodes(gang_plan)
        self._rates = {}
        is_early = event.done - gang_plan.from_step <= WARM_UP_STEPS
        if is_early or not rates.keys() <= self._rule.known:
            return
        self._calibrate(self._rule, rates)
        self._rule.wanted = self._wanted()
        left_steps = max(1, (event.total or self._trained_round.plan.steps) - event.done)
        if self._rule.measured(rates, left_steps):
            self._change(self._rule, frozenset(gang_plan.gang))

    @property
    def _keeps_all(self) -> bool:
        """Say whether nobody is let go of, however slow."""
        cycle = self._services.term.cycle(self._trained_round.cycle)
        return bool(self._trained_round.parent or asked_shard(cycle))

    @property
    def _batch(self) -> int:
        return self._trained_round.plan.batch_sequences

    def _worth_it(self, engine: str, nodes: AbstractSet[NodeId]) -> frozenset[NodeId]:
        """Return which machines are worth beginning with, or measuring; all are known then."""
        guesses, wanted = self._guesses(engine, nodes), self._wanted()
        if self._rule is not None:
            return self._worth_a_trial(self._rule, guesses)
        self._begin_rule(guesses, wanted)
        return worth_starting_with(self._batch, guesses, wanted)

    def _begin_rule(self, guesses: Mapping[NodeId, float], wanted: AbstractSet[NodeId]) -> None:
        speeds = {node: SpeedEstimate(rate, 0, GUESS_DEVIATION) for node, rate in guesses.items()}
        self._rule = GangMembers(self._batch, speeds, self._exchange_s, wanted, CHANGE_S)

    def _worth_a_trial(
        self, rule: GangMembers, guesses: Mapping[NodeId, float]
    ) -> frozenset[NodeId]:
        """Return the machines that are members, or may make the gang faster."""
        fresh = [node for node in guesses if node not in rule.known]
        for node in fresh:
            rule.add(node, SpeedEstimate(guesses[node] * self._unit, 0, GUESS_DEVIATION))
        return frozenset(
            node for node in guesses if node not in fresh or rule.is_worth_a_trial(node)
        )

    def _guesses(self, engine: str, nodes: AbstractSet[NodeId]) -> dict[NodeId, float]:
        """Return sequences per second by the class of each device; unknown ones may be the best."""
        shape, machines = self._trained_round.shape, self._services.machines
        adapter = self._trained_round.plan.options.adapter
        of_sequence = flops_per_token(shape, adapter) * shape.seq_len
        found = {node: machines.hardware_of(node) for node in nodes}
        known = {
            node: guessed_flops_per_s(engine, machine) / of_sequence if machine else 0.0
            for node, machine in found.items()
        }
        most = max(known.values(), default=0.0) or 1.0
        return {node: rate or most for node, rate in known.items()}

    def _wanted(self) -> frozenset[NodeId]:
        """Return whom people want to train, however slow they are."""
        state = self._services.term.cycle(self._trained_round.cycle)
        return self._services.placement.pinned_trainers() | {*named_trainers(state)}

    def _rates_of_nodes(self, gang_plan: GangPlan) -> dict[NodeId, float]:
        rates: dict[NodeId, float] = defaultdict(float)
        for rank, node in enumerate(gang_plan.gang):
            rates[node] += self._rates[rank]
        return dict(rates)

    def _calibrate(self, rule: GangMembers, rates: Mapping[NodeId, float]) -> None:
        """Bring guesses to what was measured, and predicted exchanges down to it."""
        if not self._is_calibrated:
            self._is_calibrated = True
            self._unit = median(rate / rule.rate(node) for node, rate in rates.items())
            rule.rescale(self._unit)
        gang, computing = frozenset(rates), computing_s(self._batch, rates.values())
        predicted = self._exchange(gang)
        if predicted and self._tokens_per_s:
            measured = self._trained_round.step_tokens / self._tokens_per_s - computing
            self._exchange_factor = min(1.0, max(0.0, measured) / predicted)

    def _exchange_s(self, gang: AbstractSet[NodeId]) -> float:
        return self._exchange_factor * self._exchange(frozenset(gang))

    def _change(self, rule: GangMembers, gang: frozenset[NodeId]) -> None:
        """Let go of whom the rule goes on without, and take back whom it wants again."""
        before_s, after_s = rule.step_s(gang), rule.step_s(rule.members)
        for node in rule.members & self.let_go:
            self._take_back(node)
        for node in gang - rule.members:
            less = f"{1 - after_s / before_s:.0%}"
            self._release(node, f"a step takes {less} less time without it than with it")

    def _look_again(self) -> None:
        """Forget what is known of whom people want by now, who was away, and after a while."""
        here, wanted = self._services.machines.alive(), self._wanted()
        for node, at_s in list(self._again_at_s.items()):
            if node in here and node not in wanted and now_s() < at_s:
                continue
            self._take_back(node)
            if self._rule is not None:
                self._rule.forget(node)

    def _release(self, node: NodeId, why: str) -> None:
        self._let_go[node] = f"it generates: {why}"
        self._again_at_s[node] = now_s() + AGAIN_S
        log.info("machine_let_go", extra={"node": self._name(node), "reason": why})
        self._show()

    def _take_back(self, node: NodeId) -> None:
        if self._let_go.pop(node, None) is None:
            return
        self._again_at_s.pop(node, None)
        log.info("machine_taken_back", extra={"node": self._name(node)})
        self._show()

    def _show(self) -> None:
        cycle = self._trained_round.cycle
        self._services.placement.show_let_go(cycle, self._let_go)
        told = [f"{self._name(node)}: {why}" for node, why in sorted(self._let_go.items())]
        self._services.board.note(cycle, {LET_GO: "; ".join(told)[:MAX_DETAIL_CHARACTERS]})

    def _name(self, node: NodeId) -> str:
        return self._services.machines.name_of(node)
