import json

import pytest

from jupiterd.errors import ConflictError

CYCLE, KEPT, OTHER = "c0ffee0000000001", "1a2b3c4d" + "0" * 56, "99887766" + "0" * 56


def row(leaf: str, **more: object) -> dict[str, object]:
    return {
        "name": f"{CYCLE[:8]}-{leaf[:8]}",
        "cycle": CYCLE,
        "domain": "python",
        "leaf": leaf,
        "kind": "checkpoint",
        "rounds": 1,
        "round": 2,
        "step": 300,
        "tokens": 1_250_000,
        "loss": 3.25,
        "checkpoint": leaf,
        "held_here": True,
        "canonical": False,
        "pinned": False,
        "parked": False,
        "written_by": {"node": "b2" * 16, "name": "beta\x1b[2J"},
        "term": 7,
    } | more


TWO = {
    "schema": "jupiter/v1",
    "branches": [
        row(KEPT, canonical=True),
        row(OTHER, rounds=0, held_here=False, written_by={"node": "a1" * 16, "name": None}),
    ],
    "pins": [],
}
PIN = {"cycle": CYCLE, "branch": f"{CYCLE[:8]}-{OTHER[:8]}", "leaf": OTHER}


@pytest.fixture
def forked(daemon):
    daemon.documents["branches"] = TWO
    daemon.results["cluster.switch"] = {
        "schema": "jupiter/v1", "cycle": CYCLE, "branch": "c0ffee00-99887766", "leaf": OTHER,
        "rounds": 0, "pinned": True,
    }  # fmt: skip
    return daemon


def test_branches_are_listed(forked, ctl, golden):
    golden("cluster_branches.txt", ctl("cluster", "branches").out)


def test_branches_are_a_document_for_programs(forked, ctl, golden):
    golden("cluster_branches.json", ctl("cluster", "branches", "-o", "json").out)
    lines = ctl("cluster", "branches", "-o", "jsonl").out.splitlines()  # one branch a line
    told = [{"schema": TWO["schema"], **branch} for branch in TWO["branches"]]
    assert [json.loads(line) for line in lines] == told


def test_a_pin_that_waits_for_its_leaf_is_told(forked, ctl):
    forked.documents["branches"] = TWO | {"pins": [PIN | {"known": False}]}
    last = ctl("cluster", "branches").out.splitlines()[-1]
    assert last == (
        "c0ffee00-99887766 is pinned and isn't known on this node yet: "
        "the heaviest one is canonical"
    )


def test_a_suspended_branch_is_marked(forked, ctl):
    forked.documents["branches"] = TWO | {"branches": [row(KEPT, parked=True)]}
    assert "  suspended  " in ctl("cluster", "branches").out


def test_a_cluster_without_branches_says_so(forked, ctl):
    forked.documents["branches"] = {"schema": "jupiter/v1", "branches": [], "pins": []}
    assert ctl("cluster", "branches").out == (
        "no cycle has recorded a checkpoint yet, so there are no branches\n"
    )


def test_a_line_is_switched_by_the_beginning_of_a_name(forked, ctl):
    ran = ctl("cluster", "switch", "9988", "--yes")
    pinned = "cycle c0ffee00 is pinned to branch c0ffee00-99887766, with 0 rounds\n"
    assert ran.out == pinned
    assert forked.executed == [("cluster.switch", {"cycle": CYCLE, "leaf": OTHER})]


def test_a_line_is_left_to_itself_again(forked, ctl):
    forked.documents["branches"] = TWO | {"pins": [PIN | {"known": True}]}
    forked.results["cluster.switch"] |= {"pinned": False, "rounds": 1}
    ran = ctl("cluster", "switch", "--auto", "c0ff", "--yes")
    begin = "cycle c0ffee00 goes on with its heaviest branch again: c0ffee00-"
    assert ran.out.startswith(begin)
    assert forked.executed == [("cluster.switch", {"cycle": CYCLE, "leaf": ""})]


def test_what_cannot_be_switched_exits_with_its_reason(forked, ctl):
    ran = ctl("cluster", "switch", "nobody", "--yes")
    assert (ran.exit_code, forked.executed) == (6, [])
    forked.failure = ConflictError("cycle c0ffee00 is running", "stop it first")
    assert ctl("cluster", "switch", "9988", "--yes").exit_code == 7


@pytest.mark.parametrize("arguments", [[], ["9988", "--auto", "c0ff"]])
def test_either_a_branch_or_auto_is_named(forked, ctl, arguments):
    assert ctl("cluster", "switch", *arguments).exit_code == 2
    assert ctl("cluster", "switch", "--auto", "c0ff").exit_code == 6
    assert forked.executed == []
