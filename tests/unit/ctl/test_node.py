"""Commands about nodes."""

from tests.unit.ctl.documents import STATUS

BETA = next(node["id"] for node in STATUS["nodes"] if node["name"].startswith("beta"))


def test_removing_a_node_needs_yes_without_a_terminal(daemon, ctl):
    ran = ctl("node", "remove", BETA[:8])
    assert ran.exit_code == 2
    assert f"({BETA[:8]}) from the cluster?" in ran.err
    assert "\x1b" not in ran.err
    assert ran.err.splitlines()[-1] == "hint: without a terminal, say so with --yes"
    assert daemon.executed == []


def test_a_node_is_removed_by_its_id(daemon, ctl):
    daemon.results["node.remove"] = {"schema": "jupiter/v1", "node": "b" * 32, "name": "beta"}
    assert ctl("node", "remove", BETA[:8], "--yes").out == "beta is no longer a member\n"
    assert daemon.executed == [("node.remove", {"node": BETA})]


def test_a_node_that_nobody_is_called_is_not_removed(daemon, ctl):
    ran = ctl("node", "remove", "omega", "--yes")
    assert (ran.exit_code, daemon.executed) == (6, [])


def test_a_role_is_pinned_and_given_back(daemon, ctl):
    daemon.results["node.role"] = {
        "schema": "jupiter/v1",
        "node": "b" * 32,
        "name": "beta",
        "role": "idle",
    }
    assert (
        ctl("node", "role", "beta", "idle").out == "beta has the role idle from the next phase on\n"
    )
    assert ctl("node", "role", "beta", "auto").out == "the leader chooses beta's role\n"


def test_a_role_that_is_none_is_refused_before_the_daemon_is_asked(daemon, ctl):
    assert ctl("node", "role", "beta", "king").exit_code == 2
    assert daemon.executed == []
