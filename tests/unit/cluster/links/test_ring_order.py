"""The order of ranks: its worst link is as good as that of any order."""

import random
from collections.abc import Callable
from itertools import permutations

import pytest

from jupiterd.cluster.links.ring_order import best_order, in_ring_order
from jupiterd.cluster.values.interface_kind import InterfaceKind
from jupiterd.cluster.values.link_quality import LinkQuality, read_qualities
from jupiterd.ids import NodeId

FAST, SLOW = 0.002, 0.050
A, B, C, D = (NodeId(letter) for letter in "abcd")


def cost_of(slow: set[frozenset[NodeId]]) -> Callable[[NodeId, NodeId], float]:
    return lambda one, other: SLOW if {one, other} in slow else FAST


def worst(order: list[NodeId], cost_s: Callable[[NodeId, NodeId], float]) -> float:
    return max(cost_s(node, order[(n + 1) % len(order)]) for n, node in enumerate(order))


def test_members_with_a_slow_link_between_them_are_no_neighbours() -> None:
    slow = {frozenset({A, B}), frozenset({C, D})}
    found = in_ring_order((A, B, C, D), cost_of(slow))
    assert found.gang in {(A, C, B, D), (A, D, B, C)}
    assert "takes 2.0 ms over the slowest of the ring, 50.0 ms in the order of ids" in found.reason


def test_ranks_of_one_node_stay_together() -> None:
    slow = {frozenset({A, B}), frozenset({C, D})}
    found = in_ring_order((A, A, B, C, C, C, D), cost_of(slow)).gang
    assert next(iter(found)) == A
    assert [found.count(node) for node in (A, B, C, D)] == [2, 1, 3, 1]
    assert all(found[found.index(n) : found.index(n) + found.count(n)] == (n,) * found.count(n)
               for n in found)  # fmt: skip


@pytest.mark.parametrize("gang", [(A,), (A, A), (A, B), (B, A, C), (D, C, B, A)])
def test_an_order_that_is_as_good_stays_and_says_nothing(gang: tuple[NodeId, ...]) -> None:
    found = in_ring_order(gang, lambda _, __: FAST)
    assert (found.gang, found.reason) == (gang, "")


def test_a_little_better_is_not_worth_another_order() -> None:
    costs = {frozenset({A, B}): 0.0105, frozenset({C, D}): 0.0105}
    found = in_ring_order((A, B, C, D), lambda one, other: costs.get(frozenset({one, other}), 0.01))
    assert found.gang == (A, B, C, D)


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_few_members_has_a_better_worst_link(seed: int) -> None:
    nodes = [NodeId(letter) for letter in "abcdef"]
    chance = random.Random(seed)
    costs = {frozenset({one, two}): chance.random() for one in nodes for two in nodes if one != two}

    def cost_s(one: NodeId, other: NodeId) -> float:
        return costs[frozenset({one, other})]

    best = min(worst([*order], cost_s) for order in permutations(nodes))
    assert worst(best_order(nodes, cost_s), cost_s) == best
    assert best_order(nodes, cost_s)[0] == nodes[0]


@pytest.mark.parametrize("seed", range(3))
def test_many_members_on_two_switches_cross_between_them_twice(seed: int) -> None:
    nodes = [NodeId(f"{number:02}") for number in range(20)]
    random.Random(seed).shuffle(nodes)
    one_switch = frozenset(nodes[::2])

    def cost_s(one: NodeId, other: NodeId) -> float:
        return FAST if (one in one_switch) == (other in one_switch) else SLOW

    order = best_order(nodes, cost_s)
    assert sorted(order) == sorted(nodes)
    crossings = sum(
        cost_s(node, order[(n + 1) % len(order)]) == SLOW for n, node in enumerate(order)
    )
    assert crossings == 2


def test_what_was_measured_counts_before_the_kind_of_network() -> None:
    wire, air = LinkQuality(InterfaceKind.ETHERNET), LinkQuality(InterfaceKind.WIFI)
    assert LinkQuality(InterfaceKind.THUNDERBOLT).cost_s < wire.cost_s < air.cost_s
    assert LinkQuality(InterfaceKind.ETHERNET, 0.001, 10e6).cost_s > air.cost_s
    assert LinkQuality(InterfaceKind.ETHERNET, 0.2).cost_s > air.cost_s


def test_what_a_member_tells_comes_back_as_it_was() -> None:
    known = {"aa": LinkQuality(InterfaceKind.WIFI, 0.004), "bb": LinkQuality(InterfaceKind.VPN)}
    told = {node: quality.to_plain() for node, quality in known.items()}
    assert read_qualities(told) == known


@pytest.mark.parametrize(
    "told",
    [None, 7, ["x"], {"aa": None}, {"aa": []}, {"aa": ["1", None, None]}, {"aa": [1, 2]}],
)
def test_odd_words_of_a_member_are_left_out(told: object) -> None:
    assert read_qualities(told) == {}


def test_odd_figures_of_a_member_count_as_unknown() -> None:
    told = {"aa": [9, float("nan"), -1.0], "bb": [2, True, "fast"]}
    assert read_qualities(told) == {
        "aa": LinkQuality(InterfaceKind.CONTAINER),
        "bb": LinkQuality(InterfaceKind.ETHERNET),
    }
