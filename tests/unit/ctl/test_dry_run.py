"""--dry-run: it is said what would be ordered, and nothing is."""

import json

import pytest

from tests.unit.ctl.documents import BETA, STATUS

NODES = [STATUS["nodes"][0], STATUS["nodes"][1] | {"name": "beta"}]

BRANCHES = {"branches": [], "pins": [{"cycle": "c0ffee0000000001", "known": True}]}

MUTATING = [
    ("node", "approve", "gamma"),
    ("node", "remove", "beta"),
    ("node", "role", "beta", "idle"),
    ("node", "drain", "beta"),
    ("node", "resume", "beta"),
    ("cluster", "open"),
    ("cluster", "close"),
    ("cluster", "rename", "attic"),
    ("cluster", "token"),
    ("cluster", "switch", "--auto", "c0ffee"),
    ("cycle", "start", "--domain", "python"),
    ("cycle", "pause"),
    ("cycle", "resume"),
    ("cycle", "rollback"),
    ("cycle", "stop"),
    ("train", "stop"),
    ("train", "start", "--data", "letters", "--model", "1m"),
    ("data", "purge", "--source", "cpython"),
    ("model", "promote", "c0ffee"),
]


@pytest.mark.parametrize("command", MUTATING, ids=" ".join)
def test_nothing_is_ordered_and_nobody_is_asked(daemon, ctl, command: tuple[str, ...]):
    daemon.documents |= {"status": STATUS | {"nodes": NODES}, "branches": BRANCHES}
    ran = ctl(*command, "--dry-run")
    assert ran.exit_code == 0, ran.err
    assert daemon.executed == []
    assert ran.out.startswith("would order ")
    assert ran.out.endswith("nothing was changed\n")


def test_scripts_get_the_verb_and_its_arguments(daemon, ctl):
    daemon.documents["status"] = STATUS | {"nodes": NODES}
    ran = ctl("node", "remove", "beta", "--dry-run", "-o", "json")
    assert json.loads(ran.out) == {
        "schema": "jupiter/v1",
        "dry_run": True,
        "verb": "node.remove",
        "arguments": {"node": BETA},
    }


def test_without_a_daemon_that_fails_too(ctl):
    assert ctl("cluster", "open", "--dry-run").exit_code == 3


def test_a_command_that_reads_has_no_such_option(ctl):
    assert ctl("status", "--dry-run").exit_code == 2


def test_what_would_be_ordered_cannot_steer_the_terminal(daemon, ctl):
    ran = ctl("cluster", "rename", "a\x1b[2J" + "b" * 999, "--dry-run")
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) < 350
