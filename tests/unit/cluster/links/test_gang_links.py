"""Which links can't carry a gang, and who is left out for it."""

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.links.gang_links import (
    HANDSHAKES,
    Link,
    LinkTrial,
    hindering,
    left_out,
    lossy_links,
)
from jupiterd.ids import NodeId

A, B, C, D = (NodeId(name) for name in "abcd")
ALL = (A, B, C)


def link(one: NodeId, other: NodeId) -> Link:
    return frozenset((one, other))


def tried(nodes: tuple[NodeId, ...], loss_at: dict[NodeId, float], seed: int) -> list[LinkTrial]:
    """Return what all find that lose so much of what comes in."""
    chance = random.Random(seed)
    return [
        LinkTrial(
            end,
            other,
            HANDSHAKES,
            sum(
                chance.random() < loss_at.get(end, 0.0) or chance.random() < loss_at.get(other, 0.0)
                for _ in range(HANDSHAKES)
            ),
        )
        for end, other in permutations(nodes, 2)
    ]


@pytest.mark.parametrize("leader", ALL)
def test_the_node_that_loses_a_third_is_the_one_that_goes_even_if_it_leads(leader: NodeId) -> None:
    found = [hindering(tried(ALL, {C: 0.3}, seed), ALL, leader) for seed in range(200)]
    assert found.count([C]) >= 190, found
    assert all(set(gone) <= {A, B, C} and len(gone) <= 1 for gone in found)


def test_nobody_goes_where_a_packet_is_lost_now_and_then() -> None:
    assert not any(hindering(tried(ALL, {C: 0.03}, seed), ALL, A) for seed in range(200))


def test_what_one_end_couldnt_tell_its_other_end_tells() -> None:
    told = [trial for trial in tried(ALL, {C: 0.3}, 7) if trial.end != C]
    assert hindering(told, ALL, A) == [C]


def test_a_leader_that_is_cut_off_leaves_out_the_others_and_not_itself() -> None:
    alone = [LinkTrial(A, other, HANDSHAKES, HANDSHAKES) for other in (B, C)]
    assert set(hindering(alone, ALL, A)) == {B, C}


def test_whom_the_leader_does_not_reach_goes_though_others_reach_it() -> None:
    known = [LinkTrial(A, C, HANDSHAKES, HANDSHAKES), LinkTrial(B, C, HANDSHAKES, 0)]
    assert hindering(known, ALL, A) == [C]


def test_of_two_that_can_not_meet_the_later_one_goes() -> None:
    assert left_out([link(B, A)], ALL) == [B]
    assert left_out([link(B, C)], ALL) == [C]


def test_whoever_stays_is_not_put_out_for_newcomers() -> None:
    bad = [link(A, C), link(A, D)]
    assert left_out(bad, (A, C, D), stay={A}) == [C, D]
    assert left_out([link(A, B)], ALL, stay={A, B}) == []
    assert left_out([link(C, D)], (A, C, D), stay={A}) == [D]


def test_a_trial_of_nothing_proves_nothing() -> None:
    assert lossy_links([LinkTrial(A, B, 0, 0), LinkTrial(A, A, 24, 24)]) == frozenset()
    assert hindering([LinkTrial(A, B, 0, 0)], ALL, A) == []


@given(st.sets(st.sampled_from([link(*pair) for pair in permutations("abcdef", 2)])), st.data())
def test_no_bad_link_is_left_and_nobody_goes_without_one(
    bad: set[Link], data: st.DataObject
) -> None:
    order = data.draw(st.permutations([NodeId(name) for name in "abcdef"]))
    gone = left_out(bad, order)
    assert len(gone) == len(set(gone))
    assert not [link for link in bad if not link & set(gone)]
    assert set(gone) <= {node for link in bad for node in link}
