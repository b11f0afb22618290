"""What kinds of trouble a seed may be made of.

Owns how many machines, which troubles, how often and in what weather. Doesn't know how a trouble
is made (`troubles`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jupiterd.cluster.membership.pairing_window import OPEN_S
from jupiterd.cluster.values.timing import LAN, Timing
from tests.simulation.trouble.network import FAIR, Weather

QUICK = Timing(suspect_s=3.5, gone_s=8.0)
"""Membership is quicker than in life, so that a seed is soon done; the election's waits aren't."""

DRIZZLE = Weather(loss=0.05, delay_s=0.05, doubled=0.02)
LAGGING = Weather(delay_s=0.15)
SHOWER = Weather(loss=0.3, delay_s=0.05)
STORM = Weather(loss=0.5, delay_s=0.3, doubled=0.1)
SLOW = Weather(loss=0.1, delay_s=1.5, doubled=0.05)


@dataclass(frozen=True)
class Profile:
    """One kind of seed."""

    name: str
    troubles: Mapping[str, float]
    """Which, and how often in proportion."""
    nodes: tuple[int, int] = (2, 4)
    spares: int = 0
    """Machines that aren't members at first."""
    troubled_s: float = 24.0
    trouble_every_s: float = 3.0
    fact_every_s: float = 0.8
    weathers: tuple[Weather, ...] = (FAIR,)
    rates: tuple[float, float] = (1.0, 1.0)
    commands: tuple[str, ...] = ()
    """What else people ask of leaders, again for each time it is named (`recording`)."""
    open_s: float = OPEN_S
    """How long the window stays open."""
    starts_split: bool = False
    is_first_day: bool = False
    """Whether nothing has begun yet, and all but the founder have walked in."""
    heals: bool = True
    """Whether the cluster is whole again in the end."""
    timing: Timing = field(default=QUICK)


CALM = Profile(
    "calm",
    {"power_cut": 2, "doze": 2, "sleep": 3, "goodbye": 1, "gang": 1},
    nodes=(2, 4),
    trouble_every_s=6.0,
)
LINKS = Profile(
    "links",
    {"cut_link": 3, "cut_one_way": 1, "mend_links": 2, "doze": 1},
    nodes=(3, 4),
    trouble_every_s=7.0,
    troubled_s=30.0,
)
WRITES = Profile(
    "writes",
    {"cut_at_write": 6, "partition": 1, "mend_links": 1, "fill_disk": 1, "empty_disk": 1},
    nodes=(1, 4),
    trouble_every_s=1.5,
    fact_every_s=0.4,
)
SPLIT = Profile(
    "split",
    {"partition": 3, "mend_links": 3, "power_cut": 1, "gang": 1, "compact": 1},
    nodes=(2, 5),
    trouble_every_s=4.0,
    fact_every_s=0.5,
    starts_split=True,
)
STORMY = Profile(
    "stormy",
    {
        "change_weather": 4,
        "partition": 1,
        "cut_one_way": 2,
        "mend_links": 2,
        "power_cut": 2,
        "cut_at_write": 1,
        "doze": 2,
        "sleep": 1,
        "bury": 1,
    },
    nodes=(2, 5),
    trouble_every_s=2.0,
    weathers=(FAIR, DRIZZLE, STORM, SLOW),
    rates=(0.5, 2.0),
)
BACKUPS = Profile(
    "backups",
    {"back_up": 3, "restore": 3, "power_cut": 1, "partition": 1, "mend_links": 1},
    nodes=(1, 4),
    spares=1,
    trouble_every_s=1.5,
    fact_every_s=0.4,
    commands=("token",),
)
"""Nothing is summed up: a disk from before a member's admission takes entries of it, no sum."""

FORGERS = Profile(
    "forgers",
    {"forge": 6, "partition": 1, "mend_links": 1, "power_cut": 1},
    nodes=(2, 3),
    spares=1,
    trouble_every_s=0.8,
    fact_every_s=0.5,
)
SLEEPERS = Profile(
    "sleepers",
    {"sleep": 4, "doze": 3, "mend_links": 1, "cut_one_way": 1},
    nodes=(2, 4),
    trouble_every_s=2.0,
    fact_every_s=0.3,
    rates=(0.7, 1.4),
)
SUMS = Profile(
    "sums",
    {
        "compact": 5,
        "partition": 2,
        "mend_links": 2,
        "power_cut": 1,
        "cut_at_write": 1,
        "back_up": 1,
        "restore": 1,
    },
    nodes=(2, 4),
    trouble_every_s=1.2,
    fact_every_s=0.3,
)
LAGGARDS = Profile(
    "laggards",
    {"sleep": 4, "goodbye": 2, "power_cut": 2, "partition": 1, "mend_links": 2},
    nodes=(3, 5),
    trouble_every_s=4.0,
    fact_every_s=0.3,
    weathers=(LAGGING,),
)
NAPS = Profile(
    "naps",
    {"hibernate": 2, "sleep": 2, "doze": 1},
    nodes=(3, 4),
    trouble_every_s=4.0,
    troubled_s=30.0,
)
GOSSIP = Profile(
    "gossip",
    {"hibernate": 1},
    nodes=(3, 4),
    trouble_every_s=20.0,
    troubled_s=50.0,
    fact_every_s=5.0,
    weathers=(LAGGING,),
    timing=LAN,
)
SHOWERS = Profile(
    "showers",
    {"change_weather": 3, "hand_over": 2},
    nodes=(3, 5),
    trouble_every_s=3.0,
    fact_every_s=0.5,
    weathers=(SHOWER,),
)
DOORS = Profile(
    "doors",
    {"partition": 2, "mend_links": 3, "power_cut": 1, "change_weather": 1, "back_up": 1},
    nodes=(1, 3),
    spares=4,
    trouble_every_s=3.0,
    fact_every_s=0.6,
    weathers=(FAIR, DRIZZLE),
    commands=("token", "token", "withdraw", "trust"),
    open_s=2.0,
)
FIRST_DAY = Profile(
    "first-day",
    {"power_cut": 2, "partition": 2, "mend_links": 2, "backdate": 6},
    nodes=(2, 4),
    spares=4,
    troubled_s=30.0,
    trouble_every_s=2.0,
    fact_every_s=1.5,
    commands=("trust", "window"),
    is_first_day=True,
)
"""The door is open until somebody shuts it; then who walked in tries to let others in."""

REMOVALS = Profile(
    "removals",
    {"partition": 3, "mend_links": 1, "power_cut": 1, "sleep": 1},
    nodes=(3, 5),
    spares=4,
    trouble_every_s=5.0,
    fact_every_s=0.5,
    commands=("remove", "window", "window", "token", "token", "trust"),
    starts_split=True,
)
TWINS = Profile(
    "twins",
    {"forge_twins": 3, "forge_clones_entry": 1, "partition": 1, "mend_links": 1},
    nodes=(2, 4),
    troubled_s=10.0,
    trouble_every_s=2.0,
    heals=False,
)
"""A machine and its clone write under one name: nothing mends that, but it must be seen."""

CLONES = Profile(
    "clones",
    {
        "copy_disk": 4,
        "cut_between_clones": 1,
        "back_up": 2,
        "partition": 2,
        "mend_links": 2,
        "power_cut": 1,
        "sleep": 1,
    },
    nodes=(2, 4),
    trouble_every_s=3.0,
    fact_every_s=0.5,
)
COPIES = Profile(
    "copies",
    {"copy_running": 2, "cut_between_clones": 1, "partition_between_clones": 5, "mend_links": 1},
    nodes=(3, 4),
    troubled_s=24.0,
    trouble_every_s=4.0,
    fact_every_s=0.3,
    starts_split=True,
    heals=False,
)
"""Two that go on as one writer may write two entries of one number: nothing mends that either."""

CROWD = Profile(
    "crowd",
    {"partition": 2, "mend_links": 2, "power_cut": 3, "sleep": 1},
    nodes=(6, 16),
    troubled_s=6.0,
    trouble_every_s=1.5,
    weathers=(FAIR, DRIZZLE),
)

USUAL = (
    CALM,
    LINKS,
    WRITES,
    SPLIT,
    STORMY,
    BACKUPS,
    FORGERS,
    SLEEPERS,
    SUMS,
    LAGGARDS,
    NAPS,
    GOSSIP,
    SHOWERS,
    TWINS,
    DOORS,
    REMOVALS,
    CLONES,
    COPIES,
    FIRST_DAY,
)
"""Taken in turn."""

BY_NAME: Mapping[str, Profile] = {profile.name: profile for profile in (*USUAL, CROWD)}

EACH_WRITE = Profile(
    "each-write",
    {"mend_links": 3, "partition": 1, "compact": 1},
    nodes=(3, 3),
    spares=1,
    troubled_s=9.0,
    trouble_every_s=3.0,
    fact_every_s=0.7,
    commands=("window", "token"),
    starts_split=True,
)
"""Short: it is lived once for each write of each machine."""

CROWD_EVERY = 50
"""Many machines cost much, so they come seldom."""


def profile_of(seed: int) -> Profile:
    """Return the kind of a seed."""
    return CROWD if seed % CROWD_EVERY == 0 else USUAL[seed % len(USUAL)]
