"""Tests that compute run beside tests that wait for daemons."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from xdist.remote import Producer

from tests.support.schedule import Schedule, has_daemons

DAEMONS = [f"tests/e2e/cycle/test_a.py::test_{number}" for number in range(4)]
COMPUTING = [f"tests/unit/test_b.py::test_{number}" for number in range(4)]
ALL = DAEMONS + COMPUTING

CONFIG: Any = SimpleNamespace(
    getvalue=lambda _name: ["popen"] * 2,  # pyright: ignore[reportUnknownLambdaType]
    option=SimpleNamespace(loadscopereorder=False),
)


@dataclass(eq=False)
class Process:
    """A process of a run, as the schedule knows it."""

    name: str
    given: list[str] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=self.name)

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += [ALL[index] for index in indices]

    def shutdown(self) -> None:
        self.shutting_down = True


def test_tests_of_every_folder_below_have_daemons_and_no_others() -> None:
    assert has_daemons("tests/e2e/cycle/test_a.py::test_b")
    assert has_daemons("/home/me/jupiter/tests/network/test_a.py")
    assert not has_daemons("tests/unit/support/network/test_a.py::test_b")
    assert not has_daemons("/home/network/tests/unit/test_a.py")


def test_the_first_begins_with_tests_that_compute_and_the_other_with_daemons() -> None:
    _, computing, waiting = scheduled()
    assert computing.given == COMPUTING[:2]
    assert waiting.given == DAEMONS[:2]


def test_one_test_waits_behind_one_with_daemons_and_each_is_run_once() -> None:
    schedule, computing, waiting = scheduled()
    for number, done in enumerate(DAEMONS[:3]):
        schedule.mark_test_complete(waiting, ALL.index(done))  # pyright: ignore[reportArgumentType]
        assert waiting.given[: number + 3] == [*DAEMONS, COMPUTING[2]][: number + 3]
        assert len(waiting.given) == number + 3
    schedule.mark_test_complete(computing, ALL.index(COMPUTING[0]))  # pyright: ignore[reportArgumentType]
    assert sorted(computing.given + waiting.given) == ALL


def test_who_finds_none_that_computes_helps_with_the_others() -> None:
    schedule, computing, _ = scheduled()
    for done in COMPUTING:
        schedule.mark_test_complete(computing, ALL.index(done))  # pyright: ignore[reportArgumentType]
    assert set(computing.given) > set(COMPUTING)
    assert set(computing.given) & set(DAEMONS[2:])


def scheduled() -> tuple[Schedule, Process, Process]:
    """Return the schedule of two processes, of which the first computes, and both."""
    schedule = Schedule(CONFIG, Producer("schedule", enabled=False), 1)
    both = Process("gw0"), Process("gw1")
    nodes: Any = both
    for node in nodes:
        schedule.add_node(node)
    for node in nodes:
        schedule.add_node_collection(node, ALL)
    schedule.schedule()
    return schedule, *both
