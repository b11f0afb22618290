"""Clusters of unlike machines that train together, simulated step by step.

Owns what is true of the machines, and how much longer a gang's step takes than the best one's.
Speeds lie in three decades; steps differ by a tenth; speeds drift; probes are off by up to a factor
of two, alike each time, and differ by 3 % besides. Nothing of this is told to the rule.
"""

import random
from dataclasses import dataclass

from jupiterd.cluster.training.speed_estimate import SpeedEstimate
from jupiterd.cluster.training.stragglers import Exchange, GangMembers, computing_s, fastest_gang
from jupiterd.ids import NodeId

STEPS, SETTLED_STEP, LOOK_EVERY_STEPS, PROBE_EVERY_STEPS = 300, 50, 10, 25
STEP_NOISE, PROBE_NOISE, MOST_DRIFT = 0.1, 0.03, 0.0002


@dataclass
class Machine:
    """One machine: what it does, how that changes, and how far its probes are off."""

    rate: float
    drift: float
    bias: float

    def in_a_step(self, chance: random.Random) -> float:
        return self.rate * max(0.3, chance.gauss(1, STEP_NOISE))

    def probed(self, chance: random.Random) -> float:
        return self.rate * self.bias * chance.gauss(1, PROBE_NOISE)


def trained_together(seed: int) -> float:
    """Return by how much a step took longer than the best gang's, at worst after it had settled.

    Looked at every LOOK_EVERY_STEPS steps, as a share of the best gang's step.
    """
    chance = random.Random(seed)
    machines = {
        NodeId(f"n{number}"): Machine(
            10 ** chance.uniform(0, 3),
            chance.uniform(-MOST_DRIFT, MOST_DRIFT),
            2 ** chance.uniform(-1, 1),
        )
        for number in range(chance.randint(2, 8))
    }
    batch = chance.choice([16, 32, 64, 128, 256])
    exchange = _exchange(chance.choice([0.0, 0.001, 0.01, 0.05]))
    probes = {node: SpeedEstimate(each.probed(chance)) for node, each in machines.items()}
    rule, worst = GangMembers(batch, probes, exchange), 0.0
    for step in range(STEPS):
        for node, machine in machines.items():
            machine.rate *= 1 + machine.drift
            if step % PROBE_EVERY_STEPS == 0 and node not in rule.members:
                rule.probed(node, machine.probed(chance))
        rule.measured({node: machines[node].in_a_step(chance) for node in sorted(rule.members)})
        if step >= SETTLED_STEP and step % LOOK_EVERY_STEPS == 0:
            worst = max(worst, _loss(batch, machines, exchange, rule.members))
    return worst


def _exchange(base_s: float) -> Exchange:
    def exchange(gang: frozenset[NodeId]) -> float:
        count = len(gang)
        return 0.0 if count == 1 else base_s * (2 * (count - 1) / count + 0.1 * count)

    return exchange


def _loss(
    batch: int,
    machines: dict[NodeId, Machine],
    exchange: Exchange,
    members: frozenset[NodeId],
) -> float:
    rates = {node: machine.rate for node, machine in machines.items()}

    def step_s(gang: frozenset[NodeId]) -> float:
        return computing_s(batch, [rates[node] for node in sorted(gang)]) + exchange(gang)

    return step_s(members) / step_s(fastest_gang(batch, rates, exchange, frozenset())) - 1
