"""The power may go out in any write of any machine, whether that write is done or lost."""

from functools import cache

import pytest

from tests.simulation.node.machine import Machine
from tests.simulation.profiles import EACH_WRITE
from tests.simulation.seeds import found, run_world
from tests.simulation.world import World

SEED = 10
MACHINES = 3
LEAST_WRITES = 10


def a_world() -> World:
    return found(SEED, EACH_WRITE)


@cache
def writes_of_each_machine() -> list[int]:
    """Live it once without any power cut, and count."""
    world = a_world()
    run_world(world)
    return [machine.disk.writes for machine in founders(world)]


def founders(world: World) -> list[Machine]:
    return [machine for machine in world.machines.values() if not machine.is_latecomer]


@pytest.mark.full
@pytest.mark.parametrize("is_torn", [True, False], ids=["lost", "done"])
@pytest.mark.parametrize("number", range(MACHINES))
def test_a_power_cut_in_any_write_breaks_no_invariant(number: int, is_torn: bool) -> None:
    total = writes_of_each_machine()[number]
    assert total >= LEAST_WRITES
    for write in range(1, total + 1):
        world = a_world()
        disk = founders(world)[number].disk
        disk.writes_left, disk.is_torn = write, is_torn
        print(f"machine {number}, write {write}")
        run_world(world)
