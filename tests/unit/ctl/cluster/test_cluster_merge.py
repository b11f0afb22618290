import pytest

from jupiterd.errors import RefusedError

HERE, THERE = "1" * 32, "2" * 32


def brief(cluster: str, name: str, node: str, *cycles: dict) -> dict:
    return {
        "id": cluster,
        "name": name,
        "nodes": {node * 32: f"node-{node}\x1b[2J"},
        "removed": [],
        "cycles": list(cycles),
    }


CYCLE = {
    "id": "c0ffee0000000001", "domain": "python", "rounds": 2, "running": False,
    "generator": "", "started_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
PLAN = {
    "schema": "jupiter/v1",
    "done": False,
    "absorbed": brief(HERE, "cellar", "a", CYCLE),
    "into": brief(THERE, "attic", "b", CYCLE | {"running": True}),
    "obstacles": [],
    "notes": ["attic (22222222) goes on"],
}


@pytest.fixture
def planned(daemon):
    daemon.results["cluster.merge"] = PLAN
    return daemon


def verbs(daemon) -> list[bool]:
    """Of each merge that was asked for, whether it was only to be shown."""
    return [bool(arguments.get("dry_run")) for _, arguments in daemon.executed]


def test_a_dry_run_shows_what_would_be_united(planned, ctl, golden):
    golden("cluster_merge.txt", ctl("cluster", "merge", "attic", "--dry-run").out)
    assert verbs(planned) == [True]


def test_without_a_terminal_and_without_yes_the_plan_is_all(planned, ctl):
    ran = ctl("cluster", "merge", "attic")
    assert (ran.exit_code, verbs(planned)) == (0, [True])
    assert ran.out.splitlines()[-1] == "nothing was changed; add --yes to merge them"


def test_a_dry_run_stays_one_even_with_yes(planned, ctl):
    ctl("cluster", "merge", "attic", "--dry-run", "--yes")
    assert verbs(planned) == [True]


def test_with_yes_they_are_merged(planned, ctl, tmp_path):
    planned.results["cluster.merge"] = PLAN | {"done": True}
    (tmp_path / "token").write_text("jupiter-abc\n")
    ran = ctl("cluster", "merge", "attic", "--token", str(tmp_path / "token"), "--yes")
    assert ran.out == (
        "cellar (11111111) is part of attic (22222222) now; its nodes move over by themselves\n"
    )
    assert planned.executed == [("cluster.merge", {"cluster": "attic", "token": "jupiter-abc"})]


def test_what_stands_in_the_way_is_shown_with_what_to_do(planned, ctl):
    obstacle = {"title": "cycle c0ffee00 is running", "hint": "stop it first"}
    planned.results["cluster.merge"] = PLAN | {"obstacles": [obstacle]}
    lines = ctl("cluster", "merge", "attic").out.splitlines()
    assert lines[-4:-2] == ["in the way: cycle c0ffee00 is running", "  hint: stop it first"]
    assert lines[-1] == "nothing was changed, and nothing can be while that is in the way"


def test_a_refusal_exits_with_5(planned, ctl):
    planned.failure = RefusedError("attic is closed", "run on any of its members: ...")
    assert ctl("cluster", "merge", "attic", "--yes").exit_code == 5
