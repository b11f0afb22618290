"""What follows an outer round, and that nothing is trained on twice along any line of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.base.positions import Positions, Range
from jupiterd.cycle.islands.outer_audit import audit_outer_branch
from jupiterd.cycle.islands.outer_orders import (
    ADRIFT,
    LAGS,
    MOMENTUM,
    OVERLAPPED,
    RATE,
    Member,
    OuterOrder,
    OuterTraining,
    first_orders,
    is_over,
    next_order,
)
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.errors import Bug

SEQ_LEN = 32
RUN = OuterTraining(Schedule(0.01, 100, 0, 20), batch_sequences=12)
THREE = (Member("c"), Member("a"), Member("b"))


def of_all(order: OuterOrder) -> Closing:
    """All islands came in with what they were told to train on."""
    names = tuple(order.batches)
    return Closing(names, tuple(SEQ_LEN * order.steps * order.batches[name] for name in names))


def without(closing: Closing, *missing: str) -> Closing:
    pairs = zip(closing.counted, closing.tokens, strict=True)
    kept = {name: tokens for name, tokens in pairs if name not in missing}
    return Closing(tuple(kept), tuple(kept.values()), (), tuple(sorted(missing)))


def test_in_the_beginning_nothing_is_merged_and_all_take_alike():
    (first,) = first_orders(RUN, THREE, 30)
    assert (first.number, first.islands, first.first_step, first.steps) == (0, (), 0, 30)
    assert first.batches == {"a": 4, "b": 4, "c": 4}
    assert first.positions == {"a": ((0, 120),), "b": ((120, 240),), "c": ((240, 360),)}
    assert first.left == Positions(360)


def test_batches_follow_speeds_where_they_are_known_and_every_rank_takes_one():
    members = (Member("a", 1, 300.0), Member("b", 4, 1.0), Member("c", 1, 100.0))
    assert first_orders(RUN, members, 30)[0].batches == {"a": 6, "b": 4, "c": 2}
    unknown = (Member("a", 1, 300.0), Member("b"))
    assert first_orders(RUN, unknown, 30)[0].batches == {"a": 6, "b": 6}


def test_who_did_not_come_in_time_takes_half_as_much_as_before_or_it_never_would():
    unlike = (Member("a", 1, 5.0), Member("b", 1, 1.0), Member("c", 1, 6.0))
    (first,) = first_orders(RUN, unlike, 30)
    assert first.batches == {"a": 5, "b": 1, "c": 6}
    members = (Member("a", 1, 500.0), Member("b"), Member("c"))
    then = next_order(RUN, [first], without(of_all(first), "b", "c"), members, 30)
    assert then.batches == {"a": 7, "b": 1, "c": 4}


def test_whoever_had_no_part_is_taken_for_as_fast_as_others():
    (first,) = first_orders(RUN, THREE, 30)
    newcomer = (Member("a", 1, 500.0), Member("z"))
    assert next_order(RUN, [first], of_all(first), newcomer, 30).batches == {"a": 6, "z": 6}


def test_what_is_missing_comes_back_before_anything_new():
    (first,) = first_orders(RUN, THREE, 30)
    then = next_order(RUN, [first], without(of_all(first), "b"), THREE[:2], 30)
    assert then.islands == ("a", "c")
    assert then.total_tokens == 240 * SEQ_LEN
    assert then.positions == {"a": ((120, 240), (360, 420)), "c": ((420, 600),)}
    assert then.left == Positions(600)
    assert "b" in then.left_out


def test_what_one_trained_whose_weights_are_not_those_of_the_others_comes_back_too():
    (first,) = first_orders(RUN, THREE, 30)
    then = next_order(RUN, [first], of_all(first).without_adrift({"b"}), THREE[:2], 30)
    assert (then.islands, then.left_out) == (("a", "c"), {"b": ADRIFT})
    assert then.positions == {"a": ((120, 240), (360, 420)), "c": ((420, 600),)}


def test_the_last_round_is_shorter_and_then_training_is_over():
    line = first_orders(RUN, THREE, 30)
    while line[-1].steps:
        line.append(next_order(RUN, line[-1:], of_all(line[-1]), THREE, 30))
    assert [each.steps for each in line] == [30, 30, 30, 10, 0]
    assert [each.first_step for each in line] == [0, 30, 60, 90, 100]
    assert (line[-1].batches, line[-1].positions) == ({}, {})
    assert line[-1].total_tokens == RUN.steps * RUN.batch_sequences * SEQ_LEN


def test_rounds_that_overlap_are_ordered_before_the_one_before_them_has_closed():
    run = replace(RUN, lag=LAGS[OVERLAPPED])
    line = first_orders(run, THREE, 30)
    assert [each.steps for each in line] == [30, 30]
    while not is_over(line[-2:]):
        line.append(next_order(run, line[-2:], of_all(line[-2]), THREE, 30))
    assert [each.steps for each in line] == [30, 30, 30, 10, 0, 0]
    assert [each.first_step for each in line] == [0, 30, 60, 90, 100, 100]
    assert [each.islands for each in line] == [(), (), *[("a", "b", "c")] * 4]
    assert line[3].positions["a"][0][0] == 3 * 30 * RUN.batch_sequences
    assert line[-1].total_tokens == RUN.steps * RUN.batch_sequences * SEQ_LEN


def outer_steps(run: OuterTraining, every_steps: int) -> list[OuterOrder]:
    """All that follow a run's rounds, each of which everybody has come in with."""
    return outer_steps_of(run, lambda _: every_steps)


def outer_steps_of(run: OuterTraining, every_steps: Callable[[int], int]) -> list[OuterOrder]:
    """The same of rounds that differ in length, by their numbers."""
    line = first_orders(run, THREE, every_steps(0))
    while line[-1].steps:
        number, before = len(line), line[-2].steps if len(line) > 1 else 0
        closing = of_all(line[-1])
        line.append(next_order(run, line[-1:], closing, THREE, every_steps(number), before))
    return line[1:]


def test_the_first_outer_step_is_the_average_and_momentum_comes_bit_by_bit():
    steps = outer_steps(replace(RUN, schedule=Schedule(0.01, 300, 0, 0)), 10)
    momenta = [each.momentum for each in steps]
    assert momenta[:3] == pytest.approx([0, 1 / 4, 2 / 5])
    assert momenta == sorted(momenta)
    assert momenta[-1] == MOMENTUM
    assert {each.rate for each in steps} == {RATE}


def test_where_the_learning_rate_falls_the_way_so_far_counts_as_much_less():
    steps = outer_steps(replace(RUN, schedule=Schedule(0.01, 100, 0, 40)), 20)
    level, half_fallen, fallen = 60, 80, 100
    told = {each.first_step: each.momentum for each in steps}
    assert told[level] == 2 / 5
    rates_then = sum(range(40, 20, -1)), sum(range(20, 0, -1))
    assert told[half_fallen] == pytest.approx(3 / 6 * rates_then[0] / (40 * 20))
    assert told[fallen] == pytest.approx(4 / 7 * rates_then[1] / rates_then[0])


def test_a_short_last_round_carries_as_short_a_part_of_the_way_so_far():
    *_, last = outer_steps(replace(RUN, schedule=Schedule(0.01, 62, 0, 0)), 20)
    assert last.momentum == pytest.approx(3 / 6 * 2 / 20)


def test_rounds_that_grow_keep_the_momentum_and_shorter_ones_carry_less_of_it():
    run = replace(RUN, schedule=Schedule(0.01, 700, 0, 0))
    growing = outer_steps_of(run, lambda number: 10 * 2**number)
    told = [each.momentum for each in growing[:-1]]
    assert told == pytest.approx([0, 1 / 4, 2 / 5, 3 / 6, 4 / 7, MOMENTUM])
    shorter = outer_steps_of(run, lambda number: 100 if number == 1 else 50)
    assert [each.momentum for each in shorter[:3]] == pytest.approx([0, 1 / 4, 2 / 5 * 50 / 100])


def test_an_average_has_no_momentum():
    steps = outer_steps(replace(RUN, outer="average"), 10)
    assert {(each.rate, each.momentum) for each in steps} == {(1.0, 0.0)}


def test_a_way_of_nobody_closes_nothing_and_nobody_trains_no_round():
    (first,) = first_orders(RUN, THREE, 30)
    for closing, members in ((Closing(("z",), (1,)), THREE), (of_all(first), [])):
        with pytest.raises(Bug):
            next_order(RUN, [first], closing, members, 30)


def test_a_round_whose_islands_are_all_gone_gives_its_data_to_those_that_are_here():
    (first,) = first_orders(RUN, THREE, 30)
    closing, newcomer = Closing((), (), (), tuple(first.batches)), Member("d")
    merged = next_order(RUN, [first], closing, [newcomer], 30)
    assert (merged.islands, merged.tokens, merged.total_tokens) == ((), (), 0)
    assert set(merged.left_out) == set(first.batches)
    given = [position for ranges in first.positions.values() for position in each(ranges)]
    assert sorted(given) == each(merged.positions["d"])


def each(ranges: Iterable[Range]) -> list[int]:
    return [position for first, end in ranges for position in range(first, end)]


@st.composite
def lines(draw: st.DrawFn) -> list[OuterOrder]:
    """A line of rounds in which islands come, go, are late or quarantined, even all of them."""
    names = "abcd"
    sizes = st.sampled_from([1, 2])
    speeds = st.sampled_from([0.0, 1.0, 3.0, 50.0])
    some = st.sets(st.sampled_from(names), min_size=1)
    lag = draw(st.sampled_from([*LAGS.values()]))
    run = OuterTraining(
        Schedule(1.0, draw(st.integers(1, 40)), 0, 0), draw(st.integers(8, 20)), lag=lag
    )

    def members() -> list[Member]:
        return [Member(name, draw(sizes), draw(speeds)) for name in draw(some)]

    line = first_orders(run, members(), draw(st.integers(1, 12)))
    while line[-lag].steps and len(line) < 12:
        closed = line[-lag]
        counted = draw(st.sets(st.sampled_from(sorted(closed.batches))))
        whole = of_all(closed)
        closing = without(whole, *({*whole.counted} - counted))
        line.append(next_order(run, line[-lag:], closing, members(), draw(st.integers(1, 12))))
    return line


@given(lines())
def test_along_any_line_every_position_is_trained_on_once_and_none_is_lost(line: list[OuterOrder]):
    trained: list[int] = []
    last = line[-1]
    for step in line[last.lag :]:
        positions = line[step.closes].positions
        trained += [p for name in step.islands for p in each(positions[name])]
    open_rounds = line[-last.lag :]
    given_out = [p for step in open_rounds for r in step.positions.values() for p in each(r)]
    all_of_them = [*trained, *given_out, *each(last.left.returned)]
    assert sorted(all_of_them) == list(range(last.left.cursor))
    assert last.total_tokens == SEQ_LEN * len(trained)
    for step in line:
        for name, batch in step.batches.items():
            assert len(each(step.positions[name])) == batch * step.steps


@given(lines())
def test_every_line_passes_its_audit_and_no_forged_one_does(line: list[OuterOrder]):
    proved = audit_outer_branch(line, SEQ_LEN)
    assert proved.problems == ()
    last = line[-1]
    assert proved.outer_steps == sum(bool(step.islands) for step in line)
    assert (proved.cursor, proved.tokens) == (last.left.cursor, last.total_tokens)
    closing = line[last.lag :][:1]
    is_told_of = not closing or bool(closing[0].islands)
    twice = {"a": ((1, 2), (1, 2))} if is_told_of else {}
    for forged in (
        [*line[:-1], replace(last, total_tokens=last.total_tokens + 1)],
        [*line[:-1], replace(last, left=replace(last.left, cursor=last.left.cursor + 1))],
        [replace(line[0], positions=twice), *line[1:]] if twice else [replace(line[0], number=1)],
        [*line[:-1], replace(last, first_step=last.first_step + 1)]
        if line[1:]
        else [replace(last, number=1)],
        [*line[:-1], replace(last, islands=("nobody",))] if line[1:] else [replace(last, number=1)],
    ):
        assert audit_outer_branch(forged, SEQ_LEN).problems
