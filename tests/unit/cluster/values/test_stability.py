"""Which of two machines is the steadier one."""

import itertools

from jupiterd.cluster.values.stability import SETTLED_S, STEADY_LAG_S, stability


def of(
    *,
    most: bool = True,
    mains: bool = True,
    wire: bool = True,
    lag_s: float = 0.0,
    uptime_s: float = 0.0,
    trusted: bool = True,
) -> int:
    return stability(
        on_mains=mains,
        is_wired=wire,
        lag_s=lag_s,
        uptime_s=uptime_s,
        is_of_most=most,
        is_trusted=trusted,
    )


def test_each_mark_outweighs_all_that_come_after_it() -> None:
    steady = {
        "trusted": True,
        "most": True,
        "mains": True,
        "wire": True,
        "lag_s": 0.0,
        "uptime_s": SETTLED_S,
    }
    shaky = {
        "trusted": False,
        "most": False,
        "mains": False,
        "wire": False,
        "lag_s": 2 * STEADY_LAG_S,
        "uptime_s": 0.0,
    }
    names = list(steady)
    for first in range(len(names)):
        better = shaky | {names[first]: steady[names[first]]}
        worse = shaky | {name: steady[name] for name in names[first + 1 :]}
        assert of(**better) > of(**worse), names[first]


def test_every_difference_counts() -> None:
    found = {
        of(most=most, mains=mains, wire=wire, lag_s=lag_s, uptime_s=uptime_s, trusted=trusted)
        for most, mains, wire, trusted in itertools.product((True, False), repeat=4)
        for lag_s, uptime_s in itertools.product((0.0, 1.0), (0.0, SETTLED_S))
    }
    assert found == set(range(64))
