"""Machines that come while islands train a run: which become islands of it, and which are let go.

Owns these decisions. Pure. Doesn't know facts of rounds, what a newcomer begins with, or time.

A newcomer is an island of its own, on the engine that it trains on by itself: so nobody else's gang
ends for it. Where people have said who trains, nobody else does.
"""

from collections.abc import Collection, Mapping, Sequence

from jupiterd.cluster.facts.facts import TrainingStarted
from jupiterd.cluster.ledger.island_runs import number_of
from jupiterd.cluster.planning.engines import AUTO, own_engine, ranks_of
from jupiterd.cluster.planning.roles import MIN_TRAINING_SHARE
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.ids import CycleId, NodeId


def is_open(run: TrainingStarted) -> bool:
    """Say whether people have left it to us who trains a run."""
    is_named = bool(run.nodes) or ":" in str(run.settings.get("islands") or "")
    return not is_named and not run.settings.get("max_ranks")


def newcomers(
    run: TrainingStarted,
    islands: Sequence[TrainingStarted],
    machines: Mapping[NodeId, Hardware],
    usable: Collection[str],
    batch_sequences: int,
) -> dict[NodeId, str]:
    """Return who may become an island, and on which engine.

    Args:
        run: what is trained.
        islands: that there are, or were: whoever is part of one isn't new.
        machines: that could train, or do.
        usable: engines that can train such a model.
        batch_sequences: of one step; each rank takes one at the least.
    """
    if not is_open(run):
        return {}
    taken = {node for island in islands for node in island.nodes}
    left = batch_sequences - sum(_ranks(island, machines) for island in islands)
    found: dict[NodeId, str] = {}
    for node in sorted(machines.keys() - taken):
        machine = machines[node]
        engine = own_engine(machine) if run.engine == AUTO else run.engine
        needed = ranks_of(machine, engine)
        if engine in machine.engines and engine in usable and needed <= left:
            found[node] = engine
            left -= needed
    return found


def _ranks(island: TrainingStarted, machines: Mapping[NodeId, Hardware]) -> int:
    known = (machines.get(node) for node in island.nodes)
    return sum(1 if each is None else ranks_of(each, island.engine) for each in known)


def too_slow(
    islands: Sequence[TrainingStarted],
    planned: int,
    rounds: Sequence[Collection[str]],
    speeds: Mapping[str, float],
) -> list[CycleId]:
    """Return who of those that came later is let go: it holds a machine, and adds next to nothing.

    Args:
        islands: of the run.
        planned: how many the run began with; these stay.
        rounds: who had a part in each of the last two: in its first one a machine warms up.
        speeds: tokens per second of each, as measured in the last one.
    """
    least = MIN_TRAINING_SHARE * max(speeds.values(), default=0.0)
    newcomers = [island.cycle for island in islands if number_of(island) > planned]
    warm = [each for each in newcomers if len(rounds) > 1 and all(each in part for part in rounds)]
    return [each for each in warm if 0 < speeds.get(each, 0.0) < least]
