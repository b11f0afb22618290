"""How many requests are under way: against servers that are nothing but a rule of time."""

import heapq
from collections.abc import Callable

from jupiterd.cycle.generation.pace import RequestPace

TOKENS = 100


def limits(pace: RequestPace, answer_s: Callable[[int], float], requests: int = 200) -> list[int]:
    """Ask a server whose answers take so long with so many under way; return the limits there were.

    It gives each request its time when it begins.
    """
    now_s, begun, found = 0.0, 0, [pace.limit]
    under_way: list[tuple[float, float]] = []
    while begun < requests or under_way:
        while begun < requests and len(under_way) < pace.limit:
            heapq.heappush(under_way, (now_s + answer_s(len(under_way) + 1), now_s))
            begun += 1
        now_s, began_s = heapq.heappop(under_way)
        pace.answer(now_s, began_s, TOKENS)
        if pace.limit != found[-1]:
            found.append(pace.limit)
    return found


def test_a_server_that_answers_many_at_once_gets_sixteen():
    assert limits(RequestPace(), lambda _: 10.0) == [4, 8, 16]


def test_a_server_that_answers_one_after_another_gets_no_more_than_at_first():
    assert limits(RequestPace(), lambda under_way: 10.0 * under_way) == [4, 8, 4]


def test_what_pays_up_to_eight_goes_no_further():
    assert limits(RequestPace(), lambda under_way: 10.0 * max(1, under_way / 8)) == [4, 8, 16, 8]


def test_there_are_never_more_than_allowed():
    assert limits(RequestPace(most=3), lambda _: 1.0) == [3]
    assert limits(RequestPace(most=6), lambda _: 1.0) == [4, 6]


def test_a_server_that_is_too_busy_gets_half_once_for_all_that_were_on_their_way():
    pace = RequestPace()
    pace.busy(now_s=5.0, began_s=1.0)
    pace.busy(now_s=5.1, began_s=2.0)
    assert pace.limit == 2
    pace.busy(now_s=9.0, began_s=6.0)
    pace.busy(now_s=19.0, began_s=16.0)
    assert pace.limit == 1
    assert limits(pace, lambda _: 1.0) == [1]
