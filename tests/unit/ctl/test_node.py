"""Commands about nodes."""


def test_removing_a_node_needs_yes_without_a_terminal(daemon, ctl):
    ran = ctl("node", "remove", "beta")
    assert ran.exit_code == 2
    assert ran.err.splitlines()[-1] == "hint: without a terminal, say so with --yes"
    assert daemon.executed == []


def test_a_node_is_removed_by_name(daemon, ctl):
    daemon.results["node.remove"] = {"schema": "jupiter/v1", "node": "b" * 32, "name": "beta"}
    assert ctl("node", "remove", "beta", "--yes").out == "beta is no longer a member\n"
    assert daemon.executed == [("node.remove", {"node": "beta"})]


def test_a_role_is_pinned_and_given_back(daemon, ctl):
    daemon.results["node.role"] = {
        "schema": "jupiter/v1",
        "node": "b" * 32,
        "name": "beta",
        "role": "idle",
    }
    assert ctl("node", "role", "beta", "idle").out == "beta is idle from now on\n"
    assert ctl("node", "role", "beta", "auto").out == "the leader chooses beta's role\n"


def test_a_role_that_is_none_is_refused_before_the_daemon_is_asked(daemon, ctl):
    assert ctl("node", "role", "beta", "king").exit_code == 2
    assert daemon.executed == []
