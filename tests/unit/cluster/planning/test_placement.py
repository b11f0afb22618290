"""Who is given a piece of work."""

from jupiterd.cluster.planning.placement import Seat, choose
from jupiterd.ids import NodeId


def seat(name: str, role: str, *, has_engine: bool = True, running: int = 0) -> Seat:
    return Seat(NodeId(name), role, has_engine, running)


def test_generators_come_before_trainers() -> None:
    seats = [seat("a", "trainer"), seat("b", "generator"), seat("c", "hybrid")]
    assert choose(seats, needs_engine=True)[0] == "b"


def test_an_unoccupied_trainer_comes_before_a_busy_generator() -> None:
    seats = [seat("a", "trainer"), seat("b", "generator", running=1)]
    assert choose(seats, needs_engine=True)[0] == "a"


def test_a_node_without_a_library_does_what_needs_none() -> None:
    seats = [seat("a", "idle", has_engine=False)]
    assert choose(seats, needs_engine=False)[0] == "a"
    node, reason = choose(seats, needs_engine=True)
    assert node is None
    assert "machine learning library" in reason


def test_equal_seats_are_told_apart_by_id() -> None:
    seats = [seat("b", "hybrid"), seat("a", "hybrid")]
    assert choose(seats, needs_engine=True)[0] == "a"
