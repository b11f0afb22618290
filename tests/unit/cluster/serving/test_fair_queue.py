"""The queue of requests: its bounds, its turns, and that nobody is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.fair_queue import FairQueue, QueueFullError, retry_after_s


def test_clients_take_turns_whoever_came_with_many():
    queue: FairQueue[str] = FairQueue(1, 10)
    assert queue.enter("hog", "h0")
    for ticket in ("h1", "h2", "h3"):
        assert not queue.enter("hog", ticket)
    assert not queue.enter("ann", "a1")
    assert not queue.enter("bob", "b1")
    served, ticket = [], "h0"
    while ticket:
        served.append(ticket)
        ticket = queue.leave("", ticket) or ""
    assert served == ["h0", "h1", "a1", "b1", "h2", "h3"]
    assert queue.is_empty


def test_beyond_the_bound_one_is_refused_and_the_others_stay():
    queue: FairQueue[int] = FairQueue(2, 3)
    assert [queue.enter("one", ticket) for ticket in range(5)] == [True, True, False, False, False]
    with pytest.raises(QueueFullError):
        queue.enter("two", 5)
    assert (queue.running, queue.waiting) == (2, 3)


def test_one_that_goes_while_it_waits_takes_nobody_s_place():
    queue: FairQueue[int] = FairQueue(1, 9)
    for ticket in range(3):
        queue.enter("one", ticket)
    assert queue.leave("one", 1) is None
    assert queue.leave("one", 1) is None
    assert queue.leave("one", 0) == 2


@given(
    st.integers(1, 4),
    st.integers(0, 8),
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 40))),
)
def test_nobody_is_lost_whatever_happens(
    most_running: int, most_waiting: int, moves: list[tuple[str, bool, int]]
):
    queue: FairQueue[int] = FairQueue(most_running, most_waiting)
    here: dict[int, str] = {}
    running: set[int] = set()
    for number, (client, comes, which) in enumerate(moves):
        if comes:
            try:
                if queue.enter(client, number):
                    running.add(number)
                here[number] = client
            except QueueFullError:
                assert len(here) >= most_running + most_waiting
        elif here:
            ticket = sorted(here)[which % len(here)]
            following = queue.leave(here.pop(ticket), ticket)
            running.discard(ticket)
            if following is not None:
                running.add(following)
        assert (queue.running, queue.waiting) == (len(running), len(here) - len(running))
        assert queue.running == min(most_running, len(here)), "a place is empty, and one waits"
    while running:
        ticket = min(running)
        running.remove(ticket)
        following = queue.leave(here.pop(ticket), ticket)
        running |= set() if following is None else {following}
    assert not here
    assert queue.is_empty


def test_when_to_ask_again_is_within_a_minute():
    assert retry_after_s(0, 4, 3.0) == 1
    assert retry_after_s(8, 4, 3.0) == 6
    assert retry_after_s(10_000, 1, 60.0) == 60
