import json

from jupiterd.errors import RefusedError
from tests.support.ctl.documents import STATUS


def test_show_prints_the_cluster_part_of_the_status(daemon, ctl, golden):
    golden("cluster_show.txt", ctl("cluster", "show").out)
    document = json.loads(ctl("cluster", "show", "-o", "json").out)
    assert document == {"schema": "jupiter/v1", "cluster": STATUS["cluster"]}


def test_open_and_close_reach_the_daemon(daemon, ctl):
    daemon.results["cluster.open"] = {"open": True, "closes_in_s": 600.0}
    assert ctl("cluster", "open").out == "new machines may join for 10 minutes\n"
    assert ctl("cluster", "close", "--yes").out == "no new machine may join any more\n"
    assert daemon.executed == [("cluster.open", {}), ("cluster.close", {})]


def test_a_door_that_no_work_has_closed_yet_stays_open_until_then(daemon, ctl):
    daemon.results["cluster.open"] = {"open": True, "closes_in_s": None}
    assert ctl("cluster", "open").out == "new machines may join until its first work begins\n"


def test_a_refusal_exits_with_5_and_shows_the_hint_of_the_daemon(daemon, ctl):
    daemon.failure = RefusedError("only the owner may do that", "ask alpha")
    ran = ctl("cluster", "open")
    assert (ran.exit_code, ran.out) == (5, "")
    assert ran.err == "jupiterctl: error: only the owner may do that\n\nhint: ask alpha\n"


def test_a_token_is_shown_with_the_command_that_uses_it(daemon, ctl):
    daemon.results["cluster.token"] = {"token": "jupiter-abc", "id": "1", "uses": 2}
    ran = ctl("cluster", "token", "--uses", "2")
    assert ran.out.splitlines() == [
        "run on the new machine:",
        "  jupiterd --join -",
        "and paste this token where it asks for it (nobody sees it in the list of processes):",
        "  jupiter-abc",
        "good for 2 machines, for a day; take it back with: jupiterctl cluster token --withdraw 1",
    ]
    assert daemon.executed == [("cluster.token", {"uses": 2})]


def test_a_token_is_withdrawn(daemon, ctl):
    daemon.results["cluster.withdraw"] = {"id": "1f2e"}
    ran = ctl("cluster", "token", "--withdraw", "1f")
    assert ran.out == "token 1f2e lets in nobody any more\n"


def test_a_cluster_is_renamed(daemon, ctl):
    daemon.results["cluster.rename"] = {"name": "attic"}
    assert ctl("cluster", "rename", "attic").out == "the cluster is called attic now\n"
