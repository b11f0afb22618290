"""A whole cycle on this machine: three daemons, two rounds at 1m, small students and all.

Owns the run and adding up where its time goes. The figures are of the daemons' own ledger.
"""

import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jupiterd.cluster.facts.facts import WorkCompleted
from jupiterd.cycle.phases.proxies import PROXIES
from tests.support.daemons.cluster import Cluster, three_daemons

GOAL_S = 180.0
GOAL_SHARE = 0.6
ROUNDS = 2
TIMEOUT_S = 900.0


def print_whole(_trials: int) -> None:
    """Run a cycle and print how long each phase took."""
    asyncio.run(_measure())


async def _measure() -> None:
    with tempfile.TemporaryDirectory(prefix="jupiter-bench-") as folder:
        async with three_daemons(Path(folder)) as cluster:
            await cluster.meet()
            began_s = time.monotonic()
            command = ("cycle", "start", "--domain", "python", "--rounds", str(ROUNDS), "--wait")
            done = await asyncio.to_thread(cluster.ctl, *command, timeout_s=TIMEOUT_S)
            elapsed_s = time.monotonic() - began_s
            if done.returncode != 0:
                raise SystemExit(done.stderr)
            _print(cluster, elapsed_s)


def _print(cluster: Cluster, elapsed_s: float) -> None:
    shown = json.loads(cluster.ctl("cycle", "status", "-o", "json").stdout)["cycle"]
    (cycle,) = cluster[0].state().cycles.values()
    print(f"whole cycle, three daemons with a thread each, {ROUNDS} rounds of python at 1m")
    for phase in shown["phases"]:
        if phase["elapsed_s"]:
            print(f"  round {phase['round']} {phase['phase']:<9} {phase['elapsed_s']:6.1f} s")
    small_s, students = _small_students(cycle.completed.values())
    trained_s = small_s + _trained_s(shown["phases"])
    share = trained_s / elapsed_s
    print(f"  {students} small students, about {small_s:.1f} s of evaluating and judging")
    told = "reached" if elapsed_s <= GOAL_S else "MISSED"
    print(f"  from the order to the verdict: {elapsed_s:.0f} s  [<= {GOAL_S:.0f} {told}]")
    told = "reached" if share >= GOAL_SHARE else "MISSED"
    print(f"  training, small students included: {share:.0%}  [>= {GOAL_SHARE:.0%} {told}]")


def _trained_s(phases: Iterable[Mapping[str, Any]]) -> float:
    return sum(each["elapsed_s"] or 0.0 for each in phases if each["phase"] == "train")


def _small_students(done: Iterable[WorkCompleted]) -> tuple[float, int]:
    """Return how long the busiest node trained small students in each round, and how many."""
    by_node: defaultdict[tuple[int, str], float] = defaultdict(float)
    count = 0
    for fact in done:
        if f"/{PROXIES}/" in fact.item and "run" in fact.outputs:
            by_node[fact.round, fact.node] += fact.elapsed_s
            count += 1
    rounds = {number for number, _ in by_node}
    busiest = (max(s for (at, _), s in by_node.items() if at == number) for number in rounds)
    return sum(busiest), count
