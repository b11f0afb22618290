"""How long it takes to hand out roles and choose who works."""

import time

from jupiterd.cluster.planning.placement import Seat, choose
from jupiterd.cluster.planning.roles import Candidate, assign
from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.ids import NodeId
from tests.bench.figure import Figure, Goal

NODES = 32


def hardware(number: int) -> Hardware:
    """Return one of several unlike machines."""
    gpu = Gpu("a GPU", f"uuid-{number}", (8 << number % 3) << 30, "cuda")
    gpus = (gpu,) if number % 2 else ()
    cores = 4 + number % 5
    return Hardware("Linux", "x86_64", "a CPU", cores, 16 << 30, gpus=gpus, engines=("torch",))


async def place() -> float:
    """Hand out roles to 32 nodes, then place one piece of work on each; return milliseconds."""
    nodes = [NodeId(f"{number:032x}") for number in range(NODES)]
    began_s = time.perf_counter()
    roles = assign([Candidate(node, hardware(n)) for n, node in enumerate(nodes)])
    running = dict.fromkeys(nodes, 0)
    for _ in nodes:
        seats = [
            Seat(node, str(roles[node][0]), has_engine=True, running=running[node])
            for node in nodes
        ]
        node, _ = choose(seats, needs_engine=True)
        assert node is not None
        running[node] += 1
    return (time.perf_counter() - began_s) * 1000


FIGURES = (Figure("placement of 32 nodes", "ms", (Goal(0.95, 50.0),), place),)
