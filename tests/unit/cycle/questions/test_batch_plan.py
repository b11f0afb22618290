"""Who answers which batch: each counts once, whoever dies."""

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.questions.batch_plan import MOST_AT_ONCE, BatchPlan

HOME, NODES = "home", ("home", "a", "b", "c")

moves = st.lists(
    st.tuples(st.sampled_from(["take", "answer", "lose"]), st.sampled_from(NODES)), max_size=60
)


def test_batches_are_handed_out_in_their_order():
    plan = BatchPlan(3)
    assert [plan.take(node) for node in ("a", "b", "a")] == [0, 1, 2]


def test_who_has_nothing_left_to_do_takes_what_another_machine_may_hang_in():
    plan = BatchPlan(2)
    assert (plan.take("slow"), plan.take("fast")) == (0, 1)
    assert plan.answer("fast", 1)
    assert plan.take("fast") == 0
    assert plan.take("third") is None
    assert plan.answer("fast", 0)
    assert plan.is_over
    assert not plan.answer("slow", 0)
    assert plan.answered_by == ["fast"]


def test_what_a_lost_machine_was_at_goes_to_another():
    plan = BatchPlan(2)
    assert (plan.take("a"), plan.take("b")) == (0, 1)
    assert plan.lose("a") == [0]
    assert not plan.answer("a", 0)
    assert plan.take("b") == 0


def test_a_lost_machine_whose_batch_another_one_has_leaves_nothing_behind():
    plan = BatchPlan(1)
    assert (plan.take("a"), plan.take("b")) == (0, 0)
    assert plan.lose("a") == []
    assert plan.answer("b", 0)


def test_a_batch_that_must_stay_goes_to_nobody_else():
    plan = BatchPlan(2, staying=[0], home=HOME)
    assert (plan.take("a"), plan.take("a")) == (1, None)
    assert plan.take(HOME) == 0
    assert plan.take("a") is None


@given(moves, st.integers(1, 8), st.sets(st.integers(0, 7)))
def test_each_batch_is_answered_once_whoever_dies(
    moves: list[tuple[str, str]], count: int, staying: set[int]
):
    plan = BatchPlan(count, staying, HOME)
    at: dict[str, list[int]] = {node: [] for node in NODES}
    counted: list[int] = []
    for move, node in moves:
        if move == "take" and (batch := plan.take(node)) is not None:
            assert batch not in counted
            assert batch not in at[node]
            at[node].append(batch)
            assert sum(batch in held for held in at.values()) <= MOST_AT_ONCE
        elif move == "answer" and at[node]:
            batch = at[node].pop()
            if plan.answer(node, batch):
                counted.append(batch)
            else:
                assert batch in counted
        elif move == "lose":
            plan.lose(node)
            at[node] = []
    for node in NODES[1:]:
        plan.lose(node)
    while (batch := plan.take(HOME)) is not None:
        assert plan.answer(HOME, batch)
        counted.append(batch)
    for batch in at[HOME]:
        counted += [batch] if plan.answer(HOME, batch) else []
    assert sorted(counted) == [*range(count)]
    assert plan.is_over
    assert plan.answered == count
