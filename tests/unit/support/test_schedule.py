"""Tests that compute run beside tests that wait for daemons."""

from dataclasses import dataclass, field
from typing import Any, Final

from xdist.remote import Producer

from tests.support.schedule import Schedule, has_daemons

DAEMONS = [f"tests/e2e/cycle/test_a.py::test_{number}" for number in range(4)]
COMPUTING = [f"tests/unit/test_b.py::test_{number}" for number in range(4)]
ALL = DAEMONS + COMPUTING


@dataclass(frozen=True)
class Options:
    """As much of the command line as a schedule reads."""

    loadscopereorder: bool = False


class Config:
    """As much of pytest's configuration as a schedule reads."""

    option: Final = Options()

    def getvalue(self, _name: str) -> list[str]:
        """Return one specification for each process of the run."""
        return ["popen"] * 2


@dataclass(frozen=True)
class Gateway:
    """Where a process is reached."""

    id: str


@dataclass(eq=False)
class Process:
    """A process of a run, as the schedule knows it."""

    name: str
    given: list[str] = field(default_factory=list)
    shutting_down: bool = False

    @property
    def gateway(self) -> Gateway:
        return Gateway(self.name)

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


def test_what_has_been_run_is_looked_through_no_more_and_none_is_run_twice() -> None:
    schedule, *processes = scheduled()
    ended: set[str] = set()
    while not schedule.tests_finished:
        for process in processes:
            for done in [test for test in process.given if test not in ended]:
                schedule.mark_test_complete(process, ALL.index(done))  # pyright: ignore[reportArgumentType]
                ended.add(done)
                left = [unit for units in schedule.assigned_work.values() for unit in units]
                assert not ended & set(left)
    assert ended == set(ALL)
    assert sorted(test for process in processes for test in process.given) == sorted(ALL)
    assert not schedule.has_pending


def test_a_test_that_is_reported_in_parts_counts_once() -> None:
    schedule, computing, _ = scheduled()
    for _part in range(2):
        schedule.mark_test_complete(computing, ALL.index(COMPUTING[0]))  # pyright: ignore[reportArgumentType]
    assert computing.given == COMPUTING[:3]


def scheduled() -> tuple[Schedule, Process, Process]:
    """Return the schedule of two processes, of which the first computes, and both."""
    config: Any = Config()
    schedule = Schedule(config, Producer("schedule", enabled=False), 1)
    both = Process("gw0"), Process("gw1")
    nodes: Any = both
    for node in nodes:
        schedule.add_node(node)
    for node in nodes:
        schedule.add_node_collection(node, ALL)
    schedule.schedule()
    return schedule, *both
