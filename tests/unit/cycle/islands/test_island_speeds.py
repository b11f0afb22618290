"""What is known of the speed of an island that was away."""

from jupiterd.cycle.islands.island_speeds import speeds_before


def test_an_island_is_as_fast_as_when_it_was_last_there_beside_one_that_is_measured_now():
    rounds = [{"a": 6}, {"a": 5, "b": 1}, {"a": 3, "b": 3}]
    assert speeds_before(["b"], {"a": 500.0}, rounds) == {"b": 100.0}


def test_the_speeds_of_several_are_taken_together():
    rounds = [{"a": 2, "b": 2, "c": 4}]
    assert speeds_before(["c"], {"a": 100.0, "b": 300.0}, rounds) == {"c": 400.0}


def test_a_round_without_anybody_who_is_measured_now_tells_nothing():
    rounds = [{"b": 3, "c": 3}, {"a": 4, "b": 1}]
    assert speeds_before(["b"], {"a": 400.0}, rounds) == {"b": 100.0}


def test_nothing_is_known_of_one_that_was_never_there():
    assert speeds_before(["b"], {"a": 500.0}, [{"a": 6}]) == {}
    assert speeds_before(["b"], {}, [{"a": 5, "b": 1}]) == {}
