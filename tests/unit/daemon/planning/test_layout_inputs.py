"""What the leader knows of machines and links becomes a plan of layouts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptClosed
from jupiterd.cluster.facts.facts import CycleStateSet, Fact, OuterStepTaken, TrainingStarted
from jupiterd.cluster.ledger.cycle_state import STOPPED
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.cluster.ledger.state import State
from jupiterd.cluster.planning.engines import MLX, TORCH, EngineChoice, choose_engine
from jupiterd.cluster.planning.layout_choice import plan_document
from jupiterd.cluster.planning.layouts import Island, Layout, LayoutKind
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LinkQuality
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape, derive, parse_model
from jupiterd.daemon.catalog.model_specs import model_text
from jupiterd.daemon.commands.term_adapters import start_training
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.planning.layout_inputs import (
    inner_steps_of,
    planned_layouts,
    predicted_of_islands,
    predicted_tokens_per_s,
    slow_beside,
    speeds_of_islands,
)
from jupiterd.daemon.planning.requested_machines import Exchanges, RequestedMachines
from jupiterd.daemon.planning.throughput_history import measured_layouts
from jupiterd.ids import ArtifactId, CycleId, NodeId
from jupiterd.protocol.commands.train_commands import StartTraining
from tests.support.cluster.building import (
    checkpoint,
    commanded,
    data_asked,
    opened,
    outer_step,
    training,
)
from tests.support.daemon.term_parts import FakeMachines, FakeTerm, connected, services_of
from tests.unit.daemon.commands.test_train_commands import MADE, leads
from tests.unit.daemon.planning.test_rank_order import A, B, C, SeenPeers

NAMES = {A: "a", B: "b", C: "c"}
BOX = Hardware("Linux", "x86_64", "cpu", 8, 64 * 10**9, (), ("torch",))
MAC = Hardware("Darwin", "arm64", "M4", 8, 64 * 10**9, (), ("mlx",))
GIGABIT = LinkQuality(InterfaceKind.ETHERNET, 0.001, 1e9)
EARLIER = CycleId("e" * 16)


def shape() -> ModelShape:
    return parse_model(model_text("1m"))


def attempt(number: int, gang: tuple[NodeId, ...], tokens: int, engine: str = TORCH) -> list[Fact]:
    """An attempt of ten steps from scratch that took 40 s."""
    name = ArtifactId(f"k{number}")
    made = replace(checkpoint(name, tokens=tokens), cycle=EARLIER, attempt=number)
    return [
        replace(opened(number), cycle=EARLIER, gang=gang, engine=engine),
        replace(made, step=10),
        AttemptClosed(EARLIER, number, "somebody joins", 40.0),
    ]


def leading_of(*facts: Fact, link: LinkQuality = GIGABIT, **machines: Hardware) -> TermServices:
    state = State()
    for number, fact in enumerate([replace(training(), cycle=EARLIER), *facts]):
        state.apply(fact, (1, number, "0" * 64))
    found = {node: machines.get(name, BOX) for node, name in NAMES.items()}
    views = {node: {other: link for other in NAMES if other != node} for node in NAMES}
    return services_of(
        FakeTerm(A, state),
        machines=FakeMachines(found, NAMES),
        connectivity=connected(SeenPeers(views), A),
    )


def planned(leading: TermServices, *nodes: NodeId, wanted: str = "auto") -> dict[str, Any]:
    machines = {node: leading.machines.hardware_of(node) for node in nodes}
    choice = choose_engine(wanted, machines)
    plan = derive(shape(), 1)
    return plan_document(
        planned_layouts(
            leading.fleet_view, choice, shape(), plan, machines, RequestedMachines(wanted)
        ),
        NAMES,
    )


def test_a_gang_is_planned_though_one_of_it_trains_no_longer() -> None:
    leading = leading_of(*attempt(1, (A,), 40_000), *attempt(2, (B,), 80_000))
    gang, plan = EngineChoice(TORCH, (A, B), "as asked", "gloo"), derive(shape(), 1)
    known = {A: leading.machines.hardware_of(A)}
    made = planned_layouts(
        leading.fleet_view, gang, shape(), plan, known, RequestedMachines("auto")
    )
    assert plan_document(made, NAMES)["unasked"] == "a, b together, all-reduce on torch"


def test_what_each_machine_did_alone_is_what_it_will_do() -> None:
    leading = leading_of(*attempt(1, (A,), 40_000), *attempt(2, (B,), 80_000))
    told = planned(leading, A, B)
    rates = {row["title"]: row["tokens_per_s"] for row in [told["chosen"], *told["alternatives"]]}
    assert (rates["a alone on torch"], rates["b alone on torch"]) == (1_000, 2_000)
    together = rates["a, b together, all-reduce on torch"]
    assert 2_500 < together < 3_000
    assert told["chosen"]["title"] == told["unasked"] == "a, b together, all-reduce on torch"


def test_a_machine_that_was_only_measured_in_a_gang_is_faster_than_its_share() -> None:
    parameters, steps = parameter_count(shape()), 10
    summing_s = steps * 2 * (parameters * 4 / 2 / 125e6 + 0.001)
    leading = leading_of(*attempt(1, (A, B), 400_000))
    told = planned(leading, A, B)
    alone = next(row for row in told["alternatives"] if row["layout"] == LayoutKind.ALONE)
    assert alone["tokens_per_s"] == pytest.approx(200_000 / (40 - summing_s), abs=0.1)


def test_the_same_gang_is_predicted_what_it_did() -> None:
    plan = derive(shape(), 1)
    tokens = 10 * plan.batch_sequences * shape().seq_len
    leading = leading_of(*attempt(1, (A, B, C), tokens))
    gang = EngineChoice(TORCH, (A, B, C), "as asked", "gloo")
    assert predicted_tokens_per_s(leading.fleet_view, gang, shape(), plan) == pytest.approx(
        tokens / 40
    )


def test_a_link_that_nobody_measured_takes_nothing_off_a_measured_time() -> None:
    leading = leading_of(*attempt(1, (A, B), 400_000), link=LinkQuality(InterfaceKind.ETHERNET))
    told = planned(leading, A, B)
    alone = next(row for row in told["alternatives"] if row["layout"] == LayoutKind.ALONE)
    assert alone["tokens_per_s"] == 200_000 / 40
    assert told["chosen"]["has_assumed_wires"] or told["alternatives"][0]["has_assumed_wires"]


def test_another_engine_was_not_measured_by_this_one() -> None:
    both = replace(MAC, engines=("mlx", "torch"))
    leading = leading_of(*attempt(1, (A,), 400_000, engine="torch"), a=both)
    told = planned(leading, A, wanted="torch")
    assert (told["chosen"]["tokens_per_s"], told["alternatives"]) == (10_000, [])
    told = planned(leading, A)
    assert told["chosen"]["title"] == "a alone on mlx"
    assert told["chosen"]["unmeasured"] == ["a"]


def test_a_mac_and_a_box_are_islands_that_can_t_run_yet() -> None:
    leading = leading_of(*attempt(1, (A,), 400_000, MLX), *attempt(2, (B,), 800_000), a=MAC)
    told = planned(leading, A, B)
    assert told["chosen"]["title"] == "b alone on torch"
    first = told["alternatives"][0]
    assert (first["title"], first["is_choosable"]) == ("2 islands: a (mlx), b (torch)", False)


def test_nobody_predicts_a_gang_that_was_never_measured() -> None:
    gang = EngineChoice(TORCH, (A, B), "as asked", "gloo")
    assert (
        predicted_tokens_per_s(leading_of().fleet_view, gang, shape(), derive(shape(), 1)) is None
    )


ASKED = {"data": "letters", "model": "1m", "settings": {"seq_len": 64, "max_steps": 10}}


async def test_a_start_tells_the_plan_though_nothing_was_measured(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        told = (await start_training(leading, StartTraining.read(ASKED)))["layouts"]
        assert told["chosen"]["title"].endswith(" alone on torch")
        assert told["chosen"]["tokens_per_s"] is None


async def test_a_start_expects_what_the_plan_does(tmp_path: Path) -> None:
    async with leads(tmp_path, data_asked(), MADE) as leading:
        stopped = replace(commanded(STOPPED, 1), cycle=EARLIER)
        measured = attempt(1, (leading.term.self_id,), 400_000)
        await leading.term.record(replace(training(), cycle=EARLIER), *measured, stopped)
        done = await start_training(leading, StartTraining.read(ASKED))
        assert done["layouts"]["chosen"]["tokens_per_s"] == 10_000
        assert done["expected"]["tokens_per_s"] == 10_000


def islands_run(*rounds: tuple[float, float]) -> list[Fact]:
    """A run by an island on A and one on B: how long each round took, and either island for it."""
    run = replace(training("other"), cycle=OVER, started_at="2027-01-01T00:00:00Z")
    parts = {
        node: replace(run, cycle=CycleId(node[0] * 16), parent=OVER, engine=TORCH, nodes=(node,))
        for node in (A, B)
    }
    facts: list[Fact] = [run, *parts.values()]
    facts += [replace(opened(9), cycle=part.cycle, gang=part.nodes) for part in parts.values()]
    names = tuple(sorted(part.cycle for part in parts.values()))
    last = replace(outer_step(0), cycle=OVER, islands=(), pseudo_gradients=(), tokens=())
    facts.append(last)
    for number, (elapsed_s, trained_s) in enumerate(rounds, 1):
        last = replace(
            last, number=number, parent=fact_hash(last), islands=names, tokens=(30_000, 30_000),
            pseudo_gradients=(ArtifactId("5" * 64), ArtifactId("6" * 64)), first_step=30 * number,
            elapsed_s=elapsed_s, trained_s=dict.fromkeys(names, trained_s),
        )  # fmt: skip
        facts.append(last)
    return [*facts, CycleStateSet(OVER, STOPPED, "stopped by a person", 1)]


EVERY_30 = Exchanges(every_steps=30)
OVER = CycleId("9" * 16)
START = (99.0, 90.0)
"""The first round of islands, which tells nothing."""


def test_what_an_island_did_without_its_exchanges_is_what_its_machine_does() -> None:
    leading = leading_of(*islands_run(START, (60.0, 30.0)))
    told = planned(leading, A, B)
    rates = {row["title"]: row["tokens_per_s"] for row in [told["chosen"], *told["alternatives"]]}
    assert rates["a alone on torch"] == rates["b alone on torch"] == 1_000


def test_the_planner_corrects_itself_by_what_islands_came_to() -> None:
    near = leading_of(*islands_run(START, (31.0, 30.0)))
    running = leading_of(*islands_run(START, (60.0, 30.0))[:-1])
    far = leading_of(*islands_run(START, (60.0, 30.0)))
    islands, plan = [Island.of(TORCH, [A]), Island.of(TORCH, [B])], derive(shape(), 1)
    as_is = predicted_of_islands(near.fleet_view, islands, shape(), plan, EVERY_30)
    assert as_is is not None
    assert as_is == pytest.approx(2_000, rel=0.1)
    assert predicted_of_islands(running.fleet_view, islands, shape(), plan, EVERY_30) == as_is
    corrected = predicted_of_islands(far.fleet_view, islands, shape(), plan, EVERY_30)
    assert corrected == pytest.approx(60_000 / 60, rel=0.1)
    alone = predicted_of_islands(far.fleet_view, islands[:1], shape(), plan)
    assert alone == 1_000, "another kind of layout isn't corrected by it"


def test_islands_that_sent_more_correct_nothing_of_those_that_send_less() -> None:
    islands, plan = [Island.of(TORCH, [A]), Island.of(TORCH, [B])], derive(shape(), 1)
    wifi, in_fp32 = LinkQuality(InterfaceKind.WIFI, 0.01, 2e6), Exchanges("fp32", 30)
    running = leading_of(*islands_run(START, (31.0, 30.0))[:-1], link=wifi)
    as_is, slower = (
        predicted_of_islands(running.fleet_view, islands, shape(), plan, how)
        for how in (EVERY_30, in_fp32)
    )
    assert as_is is not None
    assert slower is not None
    assert slower < 0.8 * as_is
    exchange_s = 30 * plan.batch_sequences * shape().seq_len * (1 / slower - 1 / 2_000)
    sent = [
        replace(fact, settings={**fact.settings, "ways": "fp32"})
        if isinstance(fact, TrainingStarted)
        else fact
        for fact in islands_run(START, (30.0 + exchange_s, 30.0))
    ]
    leading = leading_of(*sent, link=wifi)
    assert predicted_of_islands(
        leading.fleet_view, islands, shape(), plan, EVERY_30
    ) == pytest.approx(as_is)


def test_an_island_that_was_lost_in_the_end_does_not_pass_for_as_fast_as_all() -> None:
    *facts, stopped = islands_run(START, (60.0, 30.0), (60.0, 30.0))
    last = facts[-1]
    assert isinstance(last, OuterStepTaken)
    alone = replace(
        last, number=4, parent=fact_hash(last), islands=last.islands[:1],
        pseudo_gradients=last.pseudo_gradients[:1],
        tokens=last.tokens[:1], first_step=120,
    )  # fmt: skip
    leading = leading_of(*facts, alone, stopped)
    found = list(measured_layouts(leading.term.state, shape()))
    both = Layout.of([Island.of(TORCH, [A]), Island.of(TORCH, [B])])
    assert [(each.layout, each.did.tokens) for each in found] == [(both, 120_000)]
    islands, plan = [Island.of(TORCH, [A])], derive(shape(), 1)
    assert predicted_of_islands(leading.fleet_view, islands, shape(), plan) == 1_000


def test_islands_are_as_fast_as_they_were_and_nobody_is_where_one_of_them_is_new() -> None:
    islands, plan = [Island.of(TORCH, [A]), Island.of(TORCH, [B])], derive(shape(), 1)
    leading = leading_of(*attempt(1, (A,), 40_000), *attempt(2, (B,), 80_000))
    assert speeds_of_islands(leading.fleet_view, islands, shape(), plan) == [1_000, 2_000]
    newcomer = Island.of(TORCH, [C])
    assert speeds_of_islands(leading.fleet_view, [*islands, newcomer], shape(), plan) == [0, 0, 0]
    assert speeds_of_islands(leading_of().fleet_view, islands, shape(), plan) == [0, 0]
    gone = leading_of(*attempt(1, (A,), 40_000), *attempt(2, (B,), 80_000))
    gone.machines.hardware_of = {A: BOX}.get
    assert speeds_of_islands(gone.fleet_view, islands, shape(), plan) == [0, 0]


def planned_islands(leading: TermServices, exchanges: Exchanges, *chosen: Island) -> dict[str, Any]:
    """Return what is told of islands where these were chosen; else of those that are best."""
    plan, machines = (
        derive(shape(), 1),
        {node: leading.machines.hardware_of(node) for node in (A, B)},
    )
    asked = RequestedMachines(islands="auto", exchanges=exchanges, chosen=chosen)
    choice = choose_engine("auto", machines)
    told = plan_document(
        planned_layouts(leading.fleet_view, choice, shape(), plan, machines, asked), NAMES
    )
    rows = [told["chosen"], *told["alternatives"]]
    return next(row for row in rows if row["layout"] == LayoutKind.ISLANDS)


def test_islands_are_planned_as_people_want_them_to_exchange() -> None:
    leading = leading_of(*attempt(1, (A,), 40_000), *attempt(2, (B,), 80_000))
    as_planned = planned_islands(leading, Exchanges())
    seldom = planned_islands(leading, Exchanges(every_steps=400))
    assert (as_planned["inner_steps"], seldom["inner_steps"]) == (15, 400)
    assert seldom["tokens_per_s"] > as_planned["tokens_per_s"]
    whole = planned_islands(leading, Exchanges("fp32"))
    assert whole["sync_s"] == pytest.approx(4 * as_planned["sync_s"], rel=0.1)
    assert whole["tokens_per_s"] < as_planned["tokens_per_s"]


def test_islands_that_send_more_exchange_less_often() -> None:
    leading, plan = leading_of(), derive(shape(), 1)
    islands = [Island.of(TORCH, [A]), Island.of(TORCH, [B])]
    small, large = (
        inner_steps_of(leading.fleet_view, islands, shape(), plan, ways, step_s=0.01)
        for ways in ("int8", "fp32")
    )
    assert large == pytest.approx(4 * small, rel=0.1)


def test_islands_that_people_have_named_are_predicted_too() -> None:
    leading = leading_of(*attempt(1, (A,), 40_000, MLX), *attempt(2, (B,), 80_000))
    leading.machines.hardware_of = {A: replace(BOX, engines=("mlx", "torch")), B: BOX}.get
    told = planned_islands(leading, Exchanges(), Island.of(MLX, [A]), Island.of(TORCH, [B]))
    assert told["title"] == "2 islands: a (mlx), b (torch)"
    assert told["tokens_per_s"] == pytest.approx(3_000, rel=0.1)


def test_a_machine_that_was_slow_before_is_no_newcomer_unless_people_want_it() -> None:
    leading, plan = (
        leading_of(*attempt(1, (A,), 40_000), *attempt(2, (B,), 4_000)),
        derive(shape(), 1),
    )
    islands, new = [Island.of(TORCH, [A])], [Island.of(TORCH, [B]), Island.of(TORCH, [C])]
    assert slow_beside(leading.fleet_view, islands, new, shape(), plan) == {B}, (
        "nobody has measured C"
    )
    leading.placement.pinned_trainers = lambda: frozenset({B})
    assert slow_beside(leading.fleet_view, islands, new, shape(), plan) == frozenset()
