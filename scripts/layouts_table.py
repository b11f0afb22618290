"""Write docs/layouts.md: what the planner of layouts says of clusters that people have.

    make layouts-table    (--check: changes nothing; exit 1 where the page is out of date)

Owns the clusters and the words around them. All figures are the planner's own: nothing is measured.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from jupiterd.cluster.links.allreduce_cost import Wire
from jupiterd.cluster.planning.layout_choice import LayoutPlan, plan_layouts, title
from jupiterd.cluster.planning.layouts import (
    CandidateMachine,
    Fleet,
    Island,
    LayoutKind,
    PlannedTraining,
    Prediction,
)
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.memory import flops_per_token
from jupiterd.cycle.training.plan import ModelShape, parse_model
from jupiterd.ids import NodeId

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "layouts.md"
MODELS = ("100m", "350m", "1b")

GRADIENT_BYTES = 4
RTT_S = 0.001

GIGABIT = Wire(117e6, RTT_S)
TEN_GIGABIT = Wire(1.17e9, RTT_S)
THUNDERBOLT = Wire(2.5e9, RTT_S)


@dataclass(frozen=True)
class Device:
    """A machine with a speed that is assumed."""

    name: str
    engine: str
    flops_per_s: float


GPU = Device("GPU", "torch", 60e12)
ULTRA = Device("Ultra", "mlx", 20e12)
MAX = Device("Max", "mlx", 10e12)


@dataclass(frozen=True)
class Cluster:
    """Machines, the wire between all of them, and a better one between some."""

    name: str
    devices: Sequence[Device]
    wire: Wire
    better: Wire | None = None
    """Between machines of one kind."""

    def fleet(self, shape: ModelShape) -> Fleet:
        """Return it as the planner takes it; node ids are names."""
        named = {NodeId(f"{d.name} {n}"): d for n, d in enumerate(self.devices, 1)}
        need = flops_per_token(shape)
        machines = {
            node: CandidateMachine(node, {device.engine: device.flops_per_s / need})
            for node, device in named.items()
        }
        wires = {
            frozenset(ends): self._wire(named[ends[0]], named[ends[1]])
            for ends in combinations(named, 2)
        }
        return Fleet(machines, wires)

    def _wire(self, one: Device, other: Device) -> Wire:
        return self.better if self.better is not None and one == other else self.wire


CLUSTERS = (
    Cluster("4 GPU, 1 GbE", [GPU] * 4, GIGABIT),
    Cluster("4 GPU, 10 GbE", [GPU] * 4, TEN_GIGABIT),
    Cluster("4 Max, 1 GbE", [MAX] * 4, GIGABIT),
    Cluster("4 Max, Thunderbolt", [MAX] * 4, THUNDERBOLT),
    Cluster("2 GPU + 2 Ultra, 1 GbE", [GPU] * 2 + [ULTRA] * 2, GIGABIT),
    Cluster(
        "2 GPU + 2 Ultra, 1 GbE; each pair on Thunderbolt or 10 GbE",
        [GPU] * 2 + [ULTRA] * 2,
        GIGABIT,
        TEN_GIGABIT,
    ),
    Cluster("2 GPU + 2 Max, 1 GbE", [GPU] * 2 + [MAX] * 2, GIGABIT),
)

HEAD = """\
# Layouts on paper

Written by `make layouts-table` (`scripts/layouts_table.py`) out of the planner that
`jupiterctl cycle plan` and every run ask (`jupiterd/cluster/planning/layouts.py`). **Nothing here
is measured**: speeds and wires are assumed, and the planner takes measured ones instead as soon as
there are any.

Assumed: a *GPU* computes 60 TFLOP/s (4090 class), an *Ultra* 20, a *Max* 10 (Macs), all as reached,
not as advertised; wires carry 117 MB/s (1 GbE), 1.17 GB/s (10 GbE) and 2.5 GB/s (Thunderbolt) with
round trips of 1 ms. Whether a model fits a machine's memory isn't asked. Gradients are fp32, as
gangs send them, differences between islands int8; nothing overlaps with computing:
islands that train on meanwhile, as they do unless told otherwise, wait less than that.

## The formula

P parameters, T tokens of a step (of all machines together), v a machine's tokens/s alone, N ranks,
M islands; a wire carries B bytes/s at a round trip of r.

| layout | time of a step |
|---|---|
| alone | `T / v` |
| all-reduce | `T / sum(v) + 2(N-1) x (4 P / (N B) + r)`, over the slowest hop of the best ring |
| islands | `t + s / H`: `t` a step within, `s = (M-1) x P / B + r` an exchange |

- All share a step by speed. Within islands `t = (T + sum(v x a)) / sum(v)`, where `a` is the
  island's own all-reduce.
- `H = max(15, ceil(19 s / t))`, at most 500: 95 % of the time is computed wherever 500 steps are
  enough.
- Of what all-reduce gains over the fastest island, islands keep `R / (R + 30)`, where `R` is how
  many exchanges the training has: 53 % was measured after 20 of them, 87 % after 66 and 93 % after
  133, and once 10 % after 50 (docs/benchmarks.md, `jupiterd/cluster/planning/island_gain.py`).
  `worth` is tokens/s so counted. The best layout is the one worth most, but islands only where
  they win over one gang by more than 20 %, which is what predictions may be off by.
- Islands are machines with one engine, joined by 0.6 GB/s or more. A machine under a quarter of the
  fastest one's speed generates and trains with nobody.
- Expect real wires to be 1.1 to 1.9 times slower than paper. Where predictions of a kind and
  measurements differ by more than 20 %, their ratio corrects the next ones
  (`jupiterd/cluster/planning/prediction_error.py`, of the pairs that the ledger tells of).

Shares are those of all machines' speeds added up. A training run takes the best
one by itself where all was measured (`--islands auto`), and so does each round of a cycle; where
one was never measured on what it is made for, or a gang's sum would take a second of each step,
islands train first.
"""


def main() -> None:
    """Write the page, or compare with --check."""
    if "--check" in sys.argv[1:]:
        if TARGET.read_text() != page():
            sys.exit(f"{TARGET.relative_to(ROOT)} is out of date: make layouts-table")
        return
    TARGET.write_text(page())
    print(f"{TARGET.relative_to(ROOT)}: {len(MODELS) * len(CLUSTERS)} rows")


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for model in MODELS for line in _section(model))])


def _section(model: str) -> Iterator[str]:
    shape = parse_model((ROOT / "config" / "models" / f"{model}.yaml").read_text())
    parameters, recipe = parameter_count(shape), shape.recipe
    tokens_per_step = recipe.batch_sequences * shape.seq_len
    job = PlannedTraining(parameters, GRADIENT_BYTES, tokens_per_step, steps=recipe.first_steps)
    size = f"{parameters / 1e6:,.0f} million parameters"
    yield f"## {model}: {size}, {job.tokens_per_step:,} tokens a step"
    yield ""
    yield "| cluster | fastest alone | all-reduce | islands | best |"
    yield "|---|---|---|---|---|"
    for cluster in CLUSTERS:
        yield _row(cluster, shape, job)
    yield ""


def _row(cluster: Cluster, shape: ModelShape, job: PlannedTraining) -> str:
    fleet = cluster.fleet(shape)
    first = next(iter(fleet.machines.values()))
    unasked = Island.of(first.engine, [first.node])
    plan = plan_layouts(fleet, job, unasked, choosable=frozenset(LayoutKind))
    all_speeds = sum(machine.speed for machine in fleet.machines.values())
    kinds = [_best_of(plan, kind) for kind in LayoutKind]
    cells = [_cell(each, all_speeds) for each in kinds]
    return f"| {' | '.join([cluster.name, *cells, title(plan.chosen.layout, {})])} |"


def _best_of(plan: LayoutPlan, kind: LayoutKind) -> Prediction | None:
    everything = [plan.chosen, *plan.others]
    return max((e for e in everything if e.layout.kind is kind), key=_useful, default=None)


def _useful(prediction: Prediction) -> float:
    return prediction.useful_tokens_per_s or 0.0


def _cell(prediction: Prediction | None, all_speeds: float) -> str:
    if prediction is None or prediction.tokens_per_s is None:
        return "-"
    rate, useful = prediction.tokens_per_s, _useful(prediction)
    share = f"{rate / all_speeds:.0%}"
    if prediction.layout.kind is LayoutKind.ALONE:
        return f"{rate:,.0f} ({share})"
    sync = f"{prediction.sync_s:.2f} s"
    if prediction.layout.kind is LayoutKind.ALL_REDUCE:
        size = len(prediction.layout.nodes)
        return (
            f"{rate:,.0f} ({share}); {size} machines, {sync} each step of {prediction.step_s:.2f} s"
        )
    count = len(prediction.layout.islands)
    told = f"{rate:,.0f} ({share}), worth {useful:,.0f}"
    return f"{told}; {count} islands, {sync} every {prediction.inner_steps} steps"


if __name__ == "__main__":
    main()
