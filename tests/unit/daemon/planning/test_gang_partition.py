"""Which part of a model each rank of an attempt holds, and what a gang waits for that can't."""

from dataclasses import replace

import pytest

from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.partition.partition_memory import OUTER_VECTORS
from jupiterd.cycle.training.plan import derive, parse_model
from jupiterd.daemon.catalog.model_specs import model_text
from jupiterd.daemon.planning.gang_partition import GangPartition, partition_of_gang
from jupiterd.daemon.planning.gang_plan import GangPlan
from jupiterd.daemon.planning.partition_support import check_all_know_partitions, check_can_cut
from jupiterd.daemon.planning.trained_round import TrainedRound
from jupiterd.errors import MemoryMissingError, UsageError
from jupiterd.ids import NodeId
from tests.support.cluster.building import CYCLE, NODES, opened, training
from tests.support.daemon.term_parts import FakeMachines

A, B, C = NODES[:3]
NAMES = {A: "attic", B: "box", C: "cellar"}
BOX = Hardware(
    "Linux", "x86_64", "cpu", 8, 16 * 10**9, engines=("torch",), cut_engines=("torch", "mlx")
)
SHAPE = parse_model(model_text("1b"))
TRAINED = TrainedRound(CYCLE, 1, SHAPE, derive(SHAPE, 1))
EVERYBODY = (A, B, C)


def run_with(**settings: str) -> CycleState:
    state = CycleState()
    asked = {**training().settings, **settings}
    state.apply(replace(training(), settings=asked), (1, A, "u", 1))
    return state


def machines(hardware: Hardware = BOX, here: tuple[NodeId, ...] = EVERYBODY) -> FakeMachines:
    return FakeMachines(dict.fromkeys(EVERYBODY, hardware), NAMES, here)


def found(
    state: CycleState, *gang: NodeId, hardware: Hardware = BOX, trained: TrainedRound = TRAINED
) -> GangPartition | None:
    choice = EngineChoice(TORCH, gang, "as asked")
    return partition_of_gang(machines(hardware, gang), state, trained, choice)


def test_ranks_are_told_their_parts_and_a_plan_with_nothing_left_to_decide() -> None:
    cut = found(run_with(shard="auto"), A, B, C)
    assert cut is not None
    assert cut.plan is not None
    assert cut.plan.options.micro_batch == "fixed"
    assert cut.plan.options.gradient_checkpointing in ("on", "off")
    assert len(cut.needs_bytes) == len(cut.partition.parts) == 3
    assert cut.to_order() == {"partition": cut.partition.to_plain()}
    assert max(cut.needs_bytes) <= 0.9 * BOX.ram_bytes


def test_a_model_is_whole_where_nobody_has_said_that_it_may_be_cut() -> None:
    assert found(run_with(), A, B, C) is None
    assert found(run_with(shard="off"), A, B, C) is None


def test_a_model_that_fits_is_whole_and_a_stage_that_was_named_is_taken() -> None:
    small = parse_model(model_text("1m"))
    trained = replace(TRAINED, shape=small, plan=derive(small, 1))
    assert found(run_with(shard="auto"), A, B, trained=trained) is None
    cut = found(run_with(shard="3"), A, B, trained=trained)
    assert cut is not None
    assert cut.partition.stage == 3


def test_a_limit_counts_as_if_a_machine_had_no_more() -> None:
    limited = found(run_with(shard="auto", memory=f"{A}=8"), A, B, C)
    assert limited is not None
    part_of_a, part_of_b, part_of_c = limited.partition.parts
    assert part_of_a < part_of_b == part_of_c
    assert limited.needs_bytes[0] <= 0.9 * 8e9


def test_members_on_one_machine_share_its_memory() -> None:
    apart = found(run_with(shard="auto"), A, B, C)
    together = found(
        run_with(shard="auto"), A, B, C, hardware=replace(BOX, host="h", ram_bytes=36 * 10**9)
    )
    assert apart is not None
    assert together is not None
    assert max(together.needs_bytes) <= 0.9 * 12e9


def test_an_island_is_cut_too_and_its_outer_steps_take_memory_of_each_rank() -> None:
    island, large = replace(TRAINED, parent="f" * 16), replace(BOX, ram_bytes=40 * 10**9)
    cut = found(run_with(shard="3"), A, B, C, trained=island, hardware=large)
    gang = found(run_with(shard="3"), A, B, C, hardware=large)
    assert cut is not None
    assert gang is not None
    outer = 4 * OUTER_VECTORS * parameter_count(SHAPE) // 3
    assert min(cut.needs_bytes) > outer
    assert max(cut.needs_bytes) <= 0.9 * large.ram_bytes
    assert cut.plan is not None
    assert gang.plan is not None
    assert cut.plan.micro_batch_sequences < gang.plan.micro_batch_sequences, "less is left for it"
    assert found(run_with(), A, B, C, trained=island, hardware=large) is None, "recorded before"


def test_an_island_that_has_lost_ranks_waits_where_the_last_one_can_t_hold_the_model() -> None:
    island = replace(TRAINED, parent="f" * 16)
    enough, small = (replace(BOX, ram_bytes=size * 10**9) for size in (64, 11))
    assert found(run_with(shard="2"), A, trained=island, hardware=enough) is None
    with pytest.raises(MemoryMissingError, match=r"1b waits for \d+\.\d GB more memory"):
        found(run_with(shard="2"), A, trained=island, hardware=small)


def test_a_gang_with_an_older_member_is_whole_where_that_fits_and_else_waits() -> None:
    older = replace(BOX, cut_engines=())
    large = replace(older, ram_bytes=64 * 10**9)
    assert found(run_with(shard="3"), A, B, C, hardware=large) is None
    with pytest.raises(MemoryMissingError, match="can't train a part of a model"):
        found(run_with(shard="auto"), A, B, C, hardware=older)


def test_who_is_left_waits_and_says_for_how_much_and_who_took_it_away() -> None:
    state = run_with(shard="auto")
    state.apply(replace(opened(1), gang=EVERYBODY), (1, A, "u", 2))
    small = replace(BOX, ram_bytes=11 * 10**9)
    assert found(state, A, B, C, hardware=small) is not None
    with pytest.raises(MemoryMissingError, match=r"1b waits for \d+\.\d GB more memory: ") as waits:
        found(state, A, hardware=small)
    assert "box is gone, cellar is gone" in waits.value.message
    assert not waits.value.is_permanent


def test_fewer_go_on_in_a_higher_stage_where_it_fits_them() -> None:
    state = run_with(shard="auto")
    three, two = found(state, A, B, C), found(state, A, B)
    assert three is not None
    assert two is not None
    assert two.partition.stage >= three.partition.stage


def test_where_a_rank_ran_out_of_memory_all_hold_fewer_sequences_at_a_time() -> None:
    state, choice = run_with(shard="1"), EngineChoice(TORCH, EVERYBODY, "as asked")
    small = parse_model(model_text("1m"))
    trained = replace(TRAINED, shape=small, plan=derive(small, 1))
    sizes: list[int] = []
    for most in (0, 2, 1):
        cut = partition_of_gang(machines(), state, trained, choice, most)
        assert cut is not None
        assert cut.plan is not None
        sizes.append(cut.plan.micro_batch_sequences)
    assert sizes[1:] == [2, 1]
    assert sizes[0] > 2


def test_whoever_takes_over_the_lead_knows_that_the_model_is_cut() -> None:
    fact = replace(opened(1), stage=2, parts=(600, 400))
    taken = GangPlan.of(fact).partition
    assert taken is not None
    assert (taken.partition.stage, taken.partition.parts, taken.plan) == (2, (600, 400), None)
    assert GangPlan.of(opened(1)).partition is None


def test_an_older_member_is_named_with_what_to_do() -> None:
    old = replace(BOX, cut_engines=())
    members = FakeMachines({A: BOX, B: old}, NAMES, (A, B))
    with pytest.raises(
        UsageError, match=r"--shard 2: box runs a build .* part of a model"
    ) as refused:
        check_all_know_partitions(members, "--shard 2")
    assert "jupiterctl node remove box" in refused.value.hint
    choice = EngineChoice("mlx", (A, B), "as asked")
    with pytest.raises(UsageError, match="box can't train a part of a model on mlx yet"):
        check_can_cut(members, choice, "--shard 2")


def test_a_machine_tells_on_which_engines_it_trains_a_part_and_an_older_one_on_none() -> None:
    assert Hardware.from_plain(BOX.to_plain()) == BOX
    older = {name: value for name, value in BOX.to_plain().items() if name != "cut_engines"}
    assert Hardware.from_plain(older).cut_engines == ()
