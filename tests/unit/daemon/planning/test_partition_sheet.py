"""What people are told of a model that is cut over machines."""

from dataclasses import replace

import pytest

from jupiterd.cluster.links.allreduce_cost import Wire, cut_exchange_s
from jupiterd.cluster.planning.engines import TORCH, EngineChoice
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LinkQuality
from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.partition_choice import chosen_partition
from jupiterd.cycle.training.plan import derive, parse_model
from jupiterd.daemon.catalog.model_specs import model_text
from jupiterd.daemon.planning.machine_devices import seats_of
from jupiterd.daemon.planning.partition_sheet import (
    ExchangeCost,
    exchange_cost,
    held_parts,
    partition_lines,
    partition_values,
)
from tests.unit.daemon.planning.test_layout_inputs import BOX, leading_of
from tests.unit.daemon.planning.test_rank_order import A, B, C

SHAPE = parse_model(model_text("1b"))
PLAN = derive(SHAPE, 1)
SLOW = LinkQuality(InterfaceKind.ETHERNET, 0.001, 1e8)
UNMEASURED = LinkQuality(InterfaceKind.ETHERNET)
EQUAL = (500, 500, 500)


def test_a_stage_costs_what_it_sends_over_the_links_that_were_measured() -> None:
    choice = EngineChoice(TORCH, (A, B, C), "as asked")
    stages = [Partition(stage, EQUAL) for stage in (1, 2, 3)]
    fast, slow = leading_of().fleet_view, leading_of(link=SLOW).fleet_view
    costs = [exchange_cost(fast, choice, SHAPE, PLAN, each) for each in stages]
    assert costs[0].cut_s <= costs[1].cut_s <= costs[2].cut_s
    assert costs[0].whole_s == costs[2].whole_s
    over_slow = exchange_cost(slow, choice, SHAPE, PLAN, stages[0])
    assert over_slow.cut_s == pytest.approx(10 * costs[0].cut_s, rel=0.01)
    assert over_slow.is_measured
    unknown = exchange_cost(leading_of(link=UNMEASURED).fleet_view, choice, SHAPE, PLAN, stages[0])
    assert not unknown.is_measured


def test_ranks_of_one_machine_cost_no_wire() -> None:
    assert cut_exchange_s(1e9, 10, []) == 0.0
    assert cut_exchange_s(1e9, 10, [Wire(1e8, 0.01)]) == pytest.approx(10.1)


def test_how_much_slower_is_a_share_of_a_step_of_a_gang_that_holds_everything() -> None:
    cost = ExchangeCost(whole_s=2.0, cut_s=3.0, lost_s=30.0, is_measured=True)
    assert cost.slower(25.0) == pytest.approx(0.04)
    assert cost.slower(0.0) == 0.0


@pytest.mark.parametrize(
    ("slower", "said"),
    [
        (0.04, "about 4 % slower than whole"),
        (0.001, "about as fast as whole"),
        (None, "isn't known before its links are measured"),
    ],
)
def test_people_read_who_holds_what_and_what_a_death_costs(slower: float | None, said: str) -> None:
    box = replace(BOX, ram_bytes=16 * 10**9)
    machines = leading_of(a=box, b=box, c=box).machines
    seats = seats_of(machines, [EngineChoice(TORCH, (A, B, B), "as asked")])
    chosen = chosen_partition(SHAPE, PLAN, [seat.device for seat in seats])
    held = held_parts(machines, chosen, seats)
    first, parts, losses = partition_lines(SHAPE, chosen, held, slower, 95.0)
    assert first.startswith("1b over 3 ranks, stage 1: what the optimizer keeps is cut; ")
    assert first.endswith(said)
    assert parts.startswith("Each holds: a 3")
    assert "; b (rank 1) 3" in parts
    assert parts.endswith("of 16.0 GB")
    assert "since the last whole checkpoint: about 1 min 35 s at the most" in losses
    told = partition_values(chosen, held, slower, 94.6)["partition"]
    assert (told["stage"], told["slower"], len(told["members"])) == (1, slower, 3)
    assert told["lost_s"] == 94.6


def test_of_a_model_that_every_rank_holds_nothing_is_told() -> None:
    small = parse_model(model_text("1m"))
    machines = leading_of().machines
    seats = seats_of(machines, [EngineChoice(TORCH, (A, B), "as asked")])
    chosen = chosen_partition(small, derive(small, 1), [seat.device for seat in seats])
    assert held_parts(machines, chosen, seats) == []
    assert partition_lines(small, chosen, [], None, 30.0) == []
    assert partition_values(chosen, [], None, 30.0) == {}
