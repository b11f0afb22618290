"""The seeds meet what they are there for: a case that never comes about is never tried."""

from collections.abc import Mapping

import pytest

from jupiterd.cluster.membership.admission import OPEN_COMMAND
from tests.simulation.profiles import BY_NAME
from tests.simulation.seeds import found, run_world

WANTED: Mapping[tuple[str, int], set[str]] = {
    ("calm", 3000): {"a leader that leaves names another"},
    ("split", 3000): {"two leaders in one term", "a rival order is refused"},
    ("sleepers", 3000): {"an old order is refused"},
    ("writes", 3000): {"the power goes out in a write"},
    ("backups", 3000): {"a member is learnt from itself"},
    ("doors", 3014): {
        "it walked in through the open door",
        f"the cluster is closed; run on any member: {OPEN_COMMAND}",
        "it has the join",
        "it is a member already",
        "the window is over",
        "somebody says yes",
    },
    ("clones", 3000): {
        "two machines have one key",
        "two machines with one key know of each other",
        "two leaders in one term",
    },
    ("copies", 3000): {"two machines with one key know of each other"},
    ("twins", 3000): {"a clone is known by an entry"},
    ("first-day", 3000): {"an admission is dated back", "it walked in through the open door"},
    ("removals", 3003): {"a node learns that it was removed", "members have removed each other"},
}
"""Of which profile, and from which seed on: some things come about seldom."""

SEEDS = 60


@pytest.mark.full
@pytest.mark.parametrize(("name", "first"), WANTED)
def test_the_seeds_of_a_profile_meet_what_it_is_there_for(name: str, first: int) -> None:
    missing = set(WANTED[name, first])
    for seed in range(first, first + SEEDS):
        world = found(seed, BY_NAME[name])
        run_world(world)
        missing -= {what for what, times in world.met.items() if times}
        if not missing:
            return
    pytest.fail(f"never met in {SEEDS} seeds: {missing}")
