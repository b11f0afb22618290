"""What each layout would come to, whoever stands where and however fast the wires are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.links.allreduce_cost import FEWEST_INNER_STEPS, MOST_INNER_STEPS, Wire
from jupiterd.cluster.planning.island_gain import retained_gain
from jupiterd.cluster.planning.layout_choice import LayoutPlan, plan_document, plan_layouts, title
from jupiterd.cluster.planning.layouts import (
    ONE_GANG,
    USUAL_OUTER_STEPS,
    CandidateMachine,
    Fleet,
    Island,
    Layout,
    LayoutKind,
    PlannedTraining,
    Prediction,
    islands_by_link,
    possible_layouts,
    predict,
    slow,
)
from jupiterd.ids import NodeId

A, B, C, D = NODES = tuple(NodeId(letter * 32) for letter in "abcd")
NAMES = dict(zip(NODES, "abcd", strict=True))
GIGABIT, TEN_GIGABIT, THUNDERBOLT = (Wire(rate, 0.001) for rate in (117e6, 1.17e9, 2.5e9))
P124 = 124_000_000
FLOPS = 6 * P124
JOB = PlannedTraining(P124, 4, 4 * 32_768)
ALMOST = 1 - 1e-9

SPEEDS = st.one_of(st.just(0.0), st.floats(min_value=10.0, max_value=1e6))
WIRES = st.builds(Wire, st.floats(min_value=1e6, max_value=1e10), st.floats(0.0, 0.2))
ENGINES = st.dictionaries(st.sampled_from(["mlx", "torch"]), SPEEDS, min_size=1)
JOBS = st.builds(
    PlannedTraining, st.integers(10**5, 10**9), st.sampled_from([2, 4]), st.integers(64, 10**7)
)


def fleet_of(speeds: Sequence[Mapping[str, float]], wire: Wire = GIGABIT) -> Fleet:
    machines = {
        node: CandidateMachine(node, speed) for node, speed in zip(NODES, speeds, strict=False)
    }
    return Fleet(machines, {frozenset(ends): wire for ends in combinations(machines, 2)})


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    fleet = fleet_of(draw(st.lists(ENGINES, min_size=1, max_size=4)))
    return replace(fleet, wires={ends: draw(WIRES) for ends in fleet.wires})


def alone(node: NodeId, engine: str = "torch") -> Layout:
    return Layout.of([Island.of(engine, [node])])


def ring(*nodes: NodeId, engine: str = "torch") -> Layout:
    return Layout.of([Island.of(engine, nodes)])


def rate(fleet: Fleet, job: PlannedTraining, layout: Layout) -> float:
    found = predict(fleet, job, layout).tokens_per_s
    assert found is not None
    return found


@given(fleets(), JOBS, st.floats(1.0, 100.0))
@settings(deadline=None)
def test_more_bandwidth_never_makes_a_layout_slower(
    fleet: Fleet, job: PlannedTraining, more: float
) -> None:
    for ends, wire in fleet.wires.items():
        faster = replace(wire, bytes_per_s=wire.bytes_per_s * more)
        better = replace(fleet, wires={**fleet.wires, ends: faster})
        for layout in possible_layouts(fleet):
            before, after = predict(fleet, job, layout), predict(better, job, layout)
            assert after.sync_s <= before.sync_s
            if before.tokens_per_s is not None and after.tokens_per_s is not None:
                # A shorter exchange comes more often: a whole step fewer lies between two of them.
                almost = 0.998 if after.inner_steps < before.inner_steps else ALMOST
                assert after.tokens_per_s >= almost * before.tokens_per_s


@given(fleets(), JOBS)
@settings(deadline=None)
def test_steps_between_exchanges_stay_within_their_bounds(
    fleet: Fleet, job: PlannedTraining
) -> None:
    for layout in possible_layouts(fleet):
        found = predict(fleet, job, layout)
        if layout.kind is LayoutKind.ISLANDS and found.tokens_per_s is not None:
            assert FEWEST_INNER_STEPS <= found.inner_steps <= MOST_INNER_STEPS
        else:
            assert found.inner_steps == (0 if layout.kind is LayoutKind.ISLANDS else 1)


@given(fleets(), JOBS)
@settings(deadline=None)
def test_the_chosen_one_is_the_best_of_those_that_can_run(
    fleet: Fleet, job: PlannedTraining
) -> None:
    first = next(iter(fleet.machines.values()))
    plan = plan_layouts(fleet, job, Island.of(first.engine, [first.node]))
    assert plan.chosen.layout.kind in ONE_GANG
    if plan.unasked.unmeasured:
        assert plan.chosen == plan.unasked
        return
    everything = (plan.chosen, *plan.others)
    able = [
        e for e in everything if e.layout.kind in ONE_GANG and not slow(fleet) & {*e.layout.nodes}
    ]
    assert plan.chosen.tokens_per_s == max(each.tokens_per_s or 0.0 for each in able)
    useful = [each.useful_tokens_per_s or 0.0 for each in plan.others]
    assert useful == sorted(useful, reverse=True)
    assert not {*plan.generators} & {*plan.chosen.layout.nodes}


@given(fleets(), JOBS)
@settings(deadline=None)
def test_the_order_of_the_machines_changes_nothing(fleet: Fleet, job: PlannedTraining) -> None:
    turned = Fleet(
        dict(reversed(list(fleet.machines.items()))), dict(reversed(list(fleet.wires.items())))
    )
    assert possible_layouts(turned) == possible_layouts(fleet)
    for layout in possible_layouts(fleet):
        assert predict(turned, job, layout) == predict(fleet, job, layout)


@given(fleets(), JOBS, st.permutations(NODES))
@settings(deadline=None)
def test_neither_does_what_they_are_called(
    fleet: Fleet, job: PlannedTraining, others: Sequence[NodeId]
) -> None:
    called = dict(zip(NODES, others, strict=True))
    machines = {
        called[node]: replace(machine, node=called[node])
        for node, machine in fleet.machines.items()
    }
    wires = {frozenset(called[end] for end in ends): wire for ends, wire in fleet.wires.items()}
    renamed = Fleet(machines, wires)
    for engine in ("mlx", "torch"):
        nodes = [node for node, machine in fleet.machines.items() if engine in machine.speeds]
        if len(nodes) > 1:
            before = predict(fleet, job, ring(*nodes, engine=engine))
            after = predict(renamed, job, ring(*(called[n] for n in nodes), engine=engine))
            assert after.sync_s == pytest.approx(before.sync_s)
            assert after.tokens_per_s == (
                None if before.tokens_per_s is None else pytest.approx(before.tokens_per_s)
            )


def test_one_machine_sends_nothing_and_is_as_fast_as_it_is() -> None:
    fleet = fleet_of([{"torch": 5000.0}])
    assert possible_layouts(fleet) == (alone(A),)
    found = predict(fleet, JOB, alone(A))
    assert (found.sync_s, found.tokens_per_s, found.useful_tokens_per_s) == (0.0, 5000.0, 5000.0)
    assert found.step_s == JOB.tokens_per_step / 5000.0


@pytest.mark.parametrize(
    ("tflops", "wire", "share"),
    [
        (60e12, GIGABIT, 0.11),
        (60e12, Wire(292e6, 0.001), 0.24),
        (60e12, TEN_GIGABIT, 0.56),
        (60e12, THUNDERBOLT, 0.73),
        (10e12, GIGABIT, 0.43),
        (10e12, TEN_GIGABIT, 0.88),
        (10e12, THUNDERBOLT, 0.94),
    ],
)
def test_all_reduce_in_bf16_is_as_efficient_as_physics_allows(
    tflops: float, wire: Wire, share: float
) -> None:
    speed = tflops / FLOPS
    fleet = fleet_of([{"torch": speed}] * 4, replace(wire, rtt_s=0.0))
    found = rate(fleet, PlannedTraining(P124, 2, 4 * 32_768), ring(*NODES))
    assert found / (4 * speed) == pytest.approx(share, abs=0.01)


def test_islands_over_a_gigabit_lose_a_twentieth_where_all_reduce_loses_nearly_all() -> None:
    speed = 60e12 / FLOPS
    fleet = fleet_of([{"torch": speed}] * 4)
    islands = Layout.of([Island.of("torch", [node]) for node in NODES])
    found = predict(fleet, JOB, islands)
    assert found.tokens_per_s == pytest.approx(0.95 * 4 * speed, rel=0.001)
    assert found.inner_steps == pytest.approx(149, abs=1)
    assert found.tokens_per_s is not None
    assert found.useful_tokens_per_s == pytest.approx(
        speed + retained_gain(USUAL_OUTER_STEPS) * (found.tokens_per_s - speed)
    )
    assert rate(fleet, JOB, ring(*NODES)) < speed


def test_islands_that_slow_each_other_down_are_worth_no_more_than_they_train() -> None:
    fleet = fleet_of([{"torch": 1e6}, {"torch": 1e6}], Wire(1e4, 0.0))
    found = predict(fleet, JOB, Layout.of([Island.of("torch", [A]), Island.of("torch", [B])]))
    assert found.tokens_per_s == found.useful_tokens_per_s


def test_a_ring_goes_around_its_slow_wire() -> None:
    fleet = fleet_of([{"torch": 1000.0}] * 4, TEN_GIGABIT)
    one_slow = replace(fleet, wires={**fleet.wires, frozenset((A, C)): GIGABIT})
    assert rate(one_slow, JOB, ring(*NODES)) == rate(fleet, JOB, ring(*NODES))
    assert rate(one_slow, JOB, ring(A, B, C)) < rate(fleet, JOB, ring(A, B, C))


def test_ranks_of_one_machine_make_the_ring_longer_and_send_nothing() -> None:
    one = CandidateMachine(A, {"torch": 8000.0}, {"torch": 8})
    assert predict(Fleet({A: one}, {}), JOB, alone(A)).sync_s == 0.0
    two = fleet_of([{"torch": 8000.0}, {"torch": 8000.0}])
    many = replace(two, machines={n: replace(one, node=n) for n in (A, B)})
    pair, sixteen = (predict(each, JOB, ring(A, B)).sync_s for each in (two, many))
    assert sixteen == pytest.approx(2 * 15 * (4 * P124 / 16 / 117e6 + 0.001))
    assert pair == pytest.approx(2 * 1 * (4 * P124 / 2 / 117e6 + 0.001))


def test_islands_are_made_of_engines_and_of_fast_links() -> None:
    fleet = fleet_of([{"mlx": 900.0}, {"mlx": 900.0}, {"torch": 900.0}, {"torch": 900.0}])
    fast = replace(fleet, wires={**fleet.wires, frozenset((A, B)): THUNDERBOLT})
    found = {
        title(each, NAMES) for each in possible_layouts(fast) if each.kind is LayoutKind.ISLANDS
    }
    assert found == {
        "2 islands: a + b (mlx), c + d (torch)",
        "3 islands: a + b (mlx), c (torch), d (torch)",
        "4 islands: a (mlx), b (mlx), c (torch), d (torch)",
    }


def test_who_is_slower_than_a_quarter_of_the_fastest_generates() -> None:
    fleet = fleet_of([{"torch": 1000.0}, {"torch": 250.0}, {"torch": 249.0}, {"torch": 0.0}])
    assert slow(fleet) == {C}
    assert [each for each in possible_layouts(fleet) if C in each.nodes] == [alone(C)]
    three = Fleet({n: fleet.machines[n] for n in (A, B, C)}, fleet.wires)
    plan = plan_layouts(three, JOB, Island.of("torch", [A, B, C]))
    assert plan.chosen.layout == ring(A, B)
    assert plan_document(plan, NAMES)["generators"] == ["c"]


def test_who_is_to_train_does_however_slow_it_is() -> None:
    fleet = fleet_of([{"torch": 1000.0}, {"torch": 100.0}])
    wanted = replace(fleet.machines[B], is_pinned=True)
    assert (slow(fleet), slow(replace(fleet, machines={**fleet.machines, B: wanted}))) == (
        {B},
        set(),
    )


def test_a_machine_trains_on_what_it_is_made_for_until_that_was_measured() -> None:
    assert CandidateMachine(A, {"mlx": 0.0, "torch": 9.0}, own="mlx").engine == "mlx"
    assert CandidateMachine(A, {"mlx": 5.0, "torch": 9.0}, own="mlx").engine == "torch"
    assert CandidateMachine(A, {"torch": 9.0}, own="mlx").engine == "torch", "that wasn't asked for"


def test_machines_that_nobody_measured_are_named_and_promise_nothing() -> None:
    fleet = fleet_of([{"torch": 1000.0}, {"torch": 0.0}])
    together = predict(fleet, JOB, ring(A, B))
    assert (together.tokens_per_s, together.unmeasured) == (None, (B,))
    plan = plan_layouts(fleet, JOB, Island.of("torch", [A, B]))
    assert plan.chosen.layout == ring(A, B)
    told = plan_document(plan, NAMES)
    assert told["chosen"]["why"] == "nothing is compared before that"
    assert told["chosen"]["unmeasured"] == ["b"]
    assert [row["tokens_per_s"] for row in told["alternatives"]] == [1000.0, None, None]


def test_islands_are_chosen_where_they_may_be_and_shown_where_not() -> None:
    fleet = fleet_of([{"mlx": 1000.0}, {"torch": 900.0}])
    plan = plan_layouts(fleet, JOB, Island.of("torch", [B]))
    assert plan.chosen.layout == alone(A, "mlx")
    first = plan_document(plan, NAMES)["alternatives"][0]
    assert (first["title"], first["is_choosable"]) == ("2 islands: a (mlx), b (torch)", False)
    assert first["useful_tokens_per_s"] > 1000.0
    either = plan_layouts(fleet, JOB, Island.of("torch", [B]), choosable=frozenset(LayoutKind))
    told = plan_document(either, NAMES)["chosen"]
    assert (told["title"], told["is_choosable"]) == (first["title"], True)
    assert told["why"].startswith("an exchange takes ")


def test_islands_are_worth_less_in_a_short_training() -> None:
    fleet = fleet_of([{"torch": 1000.0}, {"torch": 1000.0}])
    islands = Layout.of([Island.of("torch", [A]), Island.of("torch", [B])])

    def useful(outer_steps: int) -> float:
        job = replace(JOB, every_steps=20, steps=20 * outer_steps)
        return (predict(fleet, job, islands).useful_tokens_per_s or 0.0) / 1000.0

    assert 1.0 < useful(10) < useful(50) < useful(200) < 2.0
    assert useful(50) == pytest.approx(1 + retained_gain(50), abs=0.01)


def test_one_gang_stays_unless_islands_win_by_more_than_a_prediction_is_off() -> None:
    fleet = fleet_of([{"torch": 20_000.0}] * 2, GIGABIT)

    def plan(steps: int) -> LayoutPlan:
        job, unasked = replace(JOB, steps=steps), Island.of("torch", [A, B])
        return plan_layouts(fleet, job, unasked, choosable=frozenset(LayoutKind))

    assert plan(100_000).chosen.layout.kind is LayoutKind.ISLANDS
    short = plan(75)
    assert short.chosen.layout.kind in ONE_GANG
    islands = max(short.others, key=lambda each: each.useful_tokens_per_s or 0.0)
    assert islands.layout.kind is LayoutKind.ISLANDS
    why = plan_document(short, NAMES)["chosen"]["why"]
    assert why == "islands would win by 14%, which is less than predictions are off"


def test_islands_are_formed_by_engine_and_link_else_of_one_machine_each() -> None:
    mixed = fleet_of([{"mlx": 0.0}, {"torch": 0.0}, {"torch": 0.0}], TEN_GIGABIT)
    assert islands_by_link(mixed) == (Island("mlx", (A,)), Island("torch", (B, C)))
    fast = fleet_of([{"torch": 0.0}] * 3, TEN_GIGABIT)
    assert islands_by_link(fast) == tuple(Island("torch", (node,)) for node in (A, B, C))
    one = fleet_of([{"torch": 1000.0}, {"torch": 9.0}])
    assert len(islands_by_link(one)) == 2, "who is slow is better than nobody"
    assert len(islands_by_link(fleet_of([{"torch": 0.0}]))) == 1


def test_the_choice_says_why() -> None:
    def why(speed: float, wire: Wire) -> str:
        fleet = fleet_of([{"torch": speed}] * 2, wire)
        told = plan_document(plan_layouts(fleet, JOB, Island.of("torch", [A, B])), NAMES)
        return f"{told['chosen']['title']}: {told['chosen']['why']}"

    assert why(5000.0, TEN_GIGABIT) == (
        "a, b together, all-reduce on torch: 426 ms of each step of 14 s would go over the wire, "
        "1.9 times a alone on torch"
    )
    assert why(80_000.0, replace(GIGABIT, is_measured=False)) == (
        "a alone on torch: with others 4.2 s of each step of 5.1 s would go over the wire, "
        "as such links usually are"
    )
    (only,) = (fleet_of([{"torch": 5.0}]),)
    plan = plan_layouts(only, JOB, Island.of("torch", [A]))
    assert plan_document(plan, NAMES)["chosen"]["why"] == "no other machine could take part"


def test_a_kind_that_was_slower_than_predicted_is_chosen_less_readily() -> None:
    fleet = fleet_of([{"torch": 5000.0}] * 2, TEN_GIGABIT)

    def chosen(**corrections: float) -> Prediction:
        factors = {
            LayoutKind(kind.replace("_", "-")): factor for kind, factor in corrections.items()
        }
        return plan_layouts(fleet, JOB, Island.of("torch", [A, B]), factors).chosen

    assert chosen().layout.kind is LayoutKind.ALL_REDUCE
    assert chosen(all_reduce=0.6).layout.kind is LayoutKind.ALL_REDUCE
    assert chosen(all_reduce=0.5).layout.kind is LayoutKind.ALONE
    assert chosen(all_reduce=0.6).tokens_per_s == pytest.approx(
        0.6 * (chosen().tokens_per_s or 0.0)
    )


def test_many_machines_make_a_short_answer() -> None:
    nodes = [NodeId(f"{number:032x}") for number in range(12)]
    machines = {node: CandidateMachine(node, {"torch": 1000.0}) for node in nodes}
    fleet = Fleet(machines, {frozenset(ends): TEN_GIGABIT for ends in combinations(nodes, 2)})
    told = plan_document(plan_layouts(fleet, JOB, Island.of("torch", nodes)), {})
    assert told["chosen"]["title"].endswith("and 8 more together, all-reduce on torch")
    assert len(told["alternatives"]) + told["not_shown"] == len(possible_layouts(fleet)) - 1
