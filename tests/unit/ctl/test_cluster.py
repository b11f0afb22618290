import json

from jupiterd.errors import RefusedError
from tests.unit.ctl.documents import STATUS


def test_show_prints_the_cluster_part_of_the_status(daemon, ctl, golden):
    golden("cluster_show.txt", ctl("cluster", "show").out)
    document = json.loads(ctl("cluster", "show", "-o", "json").out)
    assert document == {"schema": "jupiter/v1", "cluster": STATUS["cluster"]}


def test_open_and_close_reach_the_daemon(daemon, ctl):
    assert ctl("cluster", "open").out == "new machines may join for ten minutes\n"
    assert ctl("cluster", "close", "--yes").out == "no new machine may join any more\n"
    assert daemon.executed == [("cluster.open", {}), ("cluster.close", {})]


def test_a_refusal_exits_with_5_and_shows_the_hint_of_the_daemon(daemon, ctl):
    daemon.failure = RefusedError("only the owner may do that", "ask alpha")
    ran = ctl("cluster", "open")
    assert (ran.exit_code, ran.out) == (5, "")
    assert ran.err == "jupiterctl: error: only the owner may do that\n\nhint: ask alpha\n"
