"""The seeds meet what they are there for: a case that never comes about is never tried."""

import pytest

from jupiterd.cluster.admission import OPEN_COMMAND
from tests.simulation.profiles import BY_NAME
from tests.simulation.seeds import found, run_world

WANTED = {
    "split": {"two leaders in one term"},
    "sleepers": {"an old order is refused"},
    "writes": {"the power goes out in a write"},
    "backups": {"a member is learnt from itself"},
    "doors": {
        "the pairing window is open",
        f"the cluster is closed; run on any member: {OPEN_COMMAND}",
        "it has the join",
        "it is a member already",
        "the window is over",
    },
    "removals": {"a node learns that it was removed", "members have removed each other"},
}
"""Of which profile; some things come about seldom."""

SEEDS = range(3000, 3060)


@pytest.mark.parametrize("name", WANTED)
def test_the_seeds_of_a_profile_meet_what_it_is_there_for(name: str) -> None:
    missing = set(WANTED[name])
    for seed in SEEDS:
        world = found(seed, BY_NAME[name])
        run_world(world)
        missing -= {what for what, times in world.met.items() if times}
        if not missing:
            return
    pytest.fail(f"never met in {len(SEEDS)} seeds: {missing}")
