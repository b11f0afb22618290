from typing import Any

import pytest

from jupiterd.daemon.app.systemd_notices import status_line


def status(leader: str | None, **work: Any) -> dict[str, Any]:
    return {
        "node": {"id": "a"},
        "cluster": {"name": "home", "leader": leader, "nodes_alive": 2, "nodes_total": 3},
        "nodes": [{"id": "b", "role": "generator"}, {"id": "a", "role": "trainer"}],
        "cycle": None,
        "train": None,
        **work,
    }


CYCLE = {"state": "running", "domain": "python", "round": 2, "phase": "train"}
OVER = {"state": "finished", "domain": "python", "round": 2, "phase": "gate"}
RUN = {"state": "waiting", "domain": None, "round": None, "phase": "train"}


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (status("a"), "home, 2 of 3 nodes, leads, trainer"),
        (status("b", cycle=OVER), "home, 2 of 3 nodes, follows, trainer"),
        (status(None, cycle=CYCLE), "home, 2 of 3 nodes, election, trainer, python: round 2 train"),
        (status("a", train=RUN), "home, 2 of 3 nodes, leads, trainer, training: train"),
    ],
)
def test_it_says_the_cluster_our_part_and_the_work(told: dict[str, Any], line: str) -> None:
    assert status_line(told) == line


def test_who_belongs_to_no_cluster_yet_says_so() -> None:
    told = status(None) | {"nodes": []}
    told["cluster"] = {"name": None, "leader": None, "nodes_alive": 0, "nodes_total": 0}
    assert status_line(told) == "no cluster yet, 0 of 0 nodes, election"
