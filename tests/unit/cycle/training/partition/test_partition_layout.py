"""Cutting a model over ranks: every number lies with exactly one of them."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.training.partition.partition import Partition, sent_numbers
from jupiterd.cycle.training.partition.partition_layout import OUTSIDE, units_of
from jupiterd.cycle.training.partition.pass_count import pass_count, slices
from jupiterd.errors import Bug

SHAPES = {
    "model.embed_tokens.weight": (100, 8),
    "model.layers.0.self_attn.q_proj.weight": (8, 8),
    "model.layers.0.input_layernorm.weight": (8,),
    "model.layers.1.self_attn.q_proj.weight": (8, 8),
    "model.layers.1.input_layernorm.weight": (8,),
    "model.norm.weight": (8,),
}

parts = st.lists(st.integers(0, 24), min_size=1, max_size=8).filter(any)


def test_a_unit_is_a_layer_or_all_that_is_outside_of_layers() -> None:
    outside, *layers = units_of(SHAPES)
    assert outside.layer == OUTSIDE
    assert list(outside.sizes) == ["model.embed_tokens.weight", "model.norm.weight"]
    assert [unit.layer for unit in layers] == [0, 1]
    assert sum(unit.size for unit in (outside, *layers)) == sum(map(math.prod, SHAPES.values()))


@given(parts)
def test_each_number_lies_with_one_rank(parts: list[int]) -> None:
    for unit in units_of(SHAPES):
        bounds = unit.bounds(parts)
        held = [
            (piece.name, number)
            for start, end in pairwise(bounds)
            for piece in unit.pieces(start, end)
            for number in range(piece.start, piece.end)
        ]
        assert held == [(name, n) for name, size in unit.sizes.items() for n in range(size)]


@given(parts)
def test_a_rank_holds_as_much_as_its_part_says_but_for_a_line_of_cache(parts: list[int]) -> None:
    for unit in units_of(SHAPES):
        bounds = unit.bounds(parts)
        for part, (start, end) in zip(parts, pairwise(bounds), strict=True):
            assert abs((end - start) - unit.size * part / sum(parts)) <= 17


def test_pieces_say_where_they_lie_in_their_unit() -> None:
    unit = units_of(SHAPES)[0]
    first, second = unit.pieces(790, 805)
    assert (first.name, first.start, first.end, first.offset) == (
        "model.embed_tokens.weight",
        790,
        800,
        790,
    )
    assert (second.name, second.start, second.end, second.offset) == (
        "model.norm.weight",
        0,
        5,
        800,
    )


def test_a_partition_survives_its_way_to_a_rank() -> None:
    partition = Partition(2, (24, 12, 16))
    assert Partition.of(partition.to_plain()) == partition
    assert partition.share(0) == pytest.approx(24 / 52)


@pytest.mark.parametrize(("stage", "parts"), [(0, (1, 1)), (4, (1, 1)), (1, (0, 0)), (1, (2, -1))])
def test_what_nobody_can_hold_is_refused(stage: int, parts: tuple[int, ...]) -> None:
    with pytest.raises(Bug):
        Partition(stage, parts)


def test_stage_one_sends_as_much_as_whole_replicas_and_stage_three_more() -> None:
    whole = sent_numbers(1200, None, 4, passes=2)
    sent = [sent_numbers(1200, Partition(stage, (1, 1, 1, 1)), 4, passes=2) for stage in (1, 2, 3)]
    assert (whole, *sent) == (1800, 1800, 2700, 5400)


def test_what_is_outside_of_layers_is_gathered_once_a_step() -> None:
    cut = Partition(3, (1, 1, 1, 1))
    sent = [sent_numbers(1200, cut, 4, passes=2, outside=outside) for outside in (0, 400, 1200)]
    assert sent == [5400, 4500, 2700]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 7))
def test_every_rank_gets_through_its_sequences_in_the_pass_count(
    shares: list[int], most: int
) -> None:
    passes = pass_count(shares, [most] * len(shares))
    for share in shares:
        parts = slices(share, passes)
        assert len(parts) == passes
        assert [n for part in parts for n in range(part.start, part.stop)] == list(range(share))
        assert max(part.stop - part.start for part in parts) <= most
