"""--dry-run: it is said what would be ordered, and nothing is."""

import json

import click
import pytest

from jupiterd.ctl.main import cli
from jupiterd.errors import (
    ConflictError,
    EmptySourceError,
    ExitCode,
    JupiterError,
    NotFoundError,
    TooLargeForDeviceError,
    UsageError,
)
from tests.support.ctl.command_tree import commands
from tests.support.ctl.documents import BETA, STATUS

pytestmark = pytest.mark.usefixtures("warm_looks")

NODES = [STATUS["nodes"][0], STATUS["nodes"][1] | {"name": "beta"}]

BRANCHES = {"branches": [], "pins": [{"cycle": "c0ffee0000000001", "known": True}]}

MUTATING = [
    ("node", "approve", "gamma"),
    ("node", "remove", "beta"),
    ("node", "trust", "beta"),
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
    ("cycle", "extend"),
    ("cycle", "dismiss"),
    ("dismiss",),
    ("cycle", "rollback"),
    ("cycle", "stop"),
    ("train", "stop"),
    ("train", "start", "--data", "letters", "--model", "1m"),
    ("data", "prepare", "letters"),
    ("data", "purge", "--source", "cpython"),
    ("data", "stop", "letters"),
    ("data", "remove", "letters"),
    ("model", "promote", "c0ffee"),
]


REFUSALS = [
    UsageError("that can't be", "say it otherwise"),
    ConflictError("a cycle is running"),
    NotFoundError("there is no such thing"),
    TooLargeForDeviceError("it fits nobody's memory"),
    EmptySourceError("it holds no text"),
]
"""One of each exit status that a leader's checks end with."""

TEXT_TAKERS = [
    ("data", "prepare", "FILE"),
    ("train", "start", "--data", "FILE", "--model", "1m"),
]
"""Commands that are given text of this machine."""

WAITING = {
    "cycle start", "cycle resume", "cycle extend", "cycle pause", "cycle stop", "train start",
    "train stop", "data prepare", "node drain",
}  # fmt: skip
"""Commands that are done at once record what takes long; these can wait for it."""

READING = {
    "status", "node list", "node show", "cluster branches", "cluster show", "check links",
    "check sync", "launch run", "launch list", "launch logs", "launch stop",
    "domain lint", "domain list", "domain new", "domain schema",
    "cycle explain", "cycle list", "cycle plan", "cycle report", "cycle status", "cycle watch",
    "gate run", "model chat", "model eval", "model export", "model list", "model serve",
    "model show",
    "train status", "train watch",
    "data audit", "data export", "data list", "data samples", "data why", "monitor", "events",
    "logs", "doctor", "completion", "version",
}  # fmt: skip
"""Commands that change nothing in the cluster: some write a file of yours, or run your script."""


SCRIPTS = {"launch run", "launch stop", "model serve"}
"""Of those, what starts or ends something: it can be tried without as well."""


def options(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


def test_whatever_changes_something_can_be_tried_without_and_answered_beforehand():
    every = dict(commands(cli))
    changing = {" ".join(each[:2]) for each in MUTATING} | {"cluster merge", "cluster leave"}
    assert every.keys() - READING == changing
    for name, command in every.items():
        assert ("--dry-run" in options(command)) == (name in changing | SCRIPTS), name
        assert "--yes" in options(command), name


def test_whatever_takes_long_can_be_waited_for_with_a_limit():
    every = dict(commands(cli))
    waiting = {name for name, command in every.items() if "--wait" in options(command)}
    assert waiting == WAITING
    assert all("--timeout" in options(every[name]) for name in waiting)


@pytest.mark.parametrize(
    "command",
    [
        ("cycle", "start", "--domain", "python"),
        ("cycle", "resume"),
        ("cycle", "extend"),
        ("node", "drain", "beta"),
        ("train", "start", "--data", "letters", "--model", "1m"),
        ("data", "prepare", "letters"),
    ],
    ids=" ".join,
)
def test_a_limit_without_waiting_is_a_mistake(daemon, ctl, command):
    ran = ctl(*command, "--timeout", "5")
    assert (ran.exit_code, ran.out) == (2, "")
    assert "--timeout needs --wait" in ran.err
    assert daemon.executed == []


@pytest.mark.parametrize("command", MUTATING, ids=" ".join)
def test_nothing_is_ordered_and_nobody_is_asked(
    daemon, ctl, command: tuple[str, ...], tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear all")
    daemon.documents |= {"status": STATUS | {"nodes": NODES}, "branches": BRANCHES}
    ran = ctl(*command, "--dry-run")
    assert ran.exit_code == 0, ran.err
    asked = {verb for verb, _ in daemon.executed}
    assert asked <= {"cycle.plan", "dry_run"}, "which change nothing"
    assert "dry_run" in asked, "the daemon makes the command's checks"
    assert ran.out.startswith("would order ")
    assert ran.out.endswith("nothing was changed\n")


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.code)
@pytest.mark.parametrize("command", MUTATING, ids=" ".join)
def test_each_refusal_of_each_command_ends_its_dry_run_with_the_same_status(
    daemon, ctl, command: tuple[str, ...], refusal: JupiterError, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear all")
    daemon.documents |= {"status": STATUS | {"nodes": NODES}, "branches": BRANCHES}
    dry = ctl(*command, "--dry-run")
    (verb,) = [told["verb"] for asked, told in daemon.executed if asked == "dry_run"]
    assert dry.exit_code == 0
    daemon.refusals = {verb: refusal}
    real, dry = ctl(*command, "--yes"), ctl(*command, "--dry-run")
    assert real.exit_code == refusal.exit_code
    assert (dry.exit_code, dry.err, dry.out) == (real.exit_code, real.err, "")


@pytest.mark.parametrize(
    ("name", "reasons"),
    [("broken.pdf", "broken 1, such as broken.pdf"), ("rows.jsonl", "field called text")],
)
@pytest.mark.parametrize("command", TEXT_TAKERS, ids=" ".join)
def test_a_source_without_text_is_refused_by_a_command_and_its_dry_run(
    daemon, ctl, command: tuple[str, ...], name: str, reasons: str, tmp_path
):
    daemon.documents |= {"status": STATUS | {"nodes": NODES}}
    place = tmp_path / name
    place.write_text('{"body": "dear all"}\n' if name == "rows.jsonl" else "%PDF-1.7\nnot one\n")
    told = [each.replace("FILE", str(place)) for each in command]
    real, dry = ctl(*told), ctl(*told, "--dry-run")
    assert real.exit_code == ExitCode.NOT_FOUND
    assert (dry.exit_code, dry.err, dry.out) == (real.exit_code, real.err, real.out)
    assert f"{place} has no text" in real.err
    assert reasons in real.err
    assert daemon.executed == [], "before anything is asked for"


def test_a_daemon_of_before_that_knows_no_dry_run_is_only_asked_whether_it_is_there(daemon, ctl):
    daemon.refusals = {"cluster.open": UsageError("unknown command dry_run")}
    ran = ctl("cluster", "open", "--dry-run")
    assert (ran.exit_code, ran.out.splitlines()[0]) == (0, "would order cluster.open")


@pytest.mark.parametrize(
    "refusal", [ConflictError("a cycle is running"), NotFoundError("there is no size 7m")]
)
def test_what_the_leader_refuses_is_refused_by_a_dry_run_too(daemon, ctl, refusal):
    daemon.refusals = {"cycle.plan": refusal, "cycle.start": refusal}
    real = ctl("cycle", "start", "--domain", "python")
    dry = ctl("cycle", "start", "--domain", "python", "--dry-run")
    assert (dry.exit_code, dry.err) == (real.exit_code, real.err)
    assert dry.exit_code == refusal.exit_code


def test_scripts_get_the_verb_and_its_arguments(daemon, ctl):
    daemon.documents["status"] = STATUS | {"nodes": NODES}
    ran = ctl("node", "remove", "beta", "--dry-run", "-o", "json")
    assert json.loads(ran.out) == {
        "schema": "jupiter/v1",
        "dry_run": True,
        "verb": "node.remove",
        "arguments": {"node": BETA},
    }


def test_a_training_says_what_it_would_hold_out(daemon, ctl, tmp_path):
    daemon.documents["status"] = STATUS | {"nodes": NODES}
    for name in ("one", "two", "three"):
        (tmp_path / "letters" / name).mkdir(parents=True)
        (tmp_path / "letters" / name / "a.txt").write_text(f"dear all of {name}, " * 9)
    start = "train", "start", "--data", str(tmp_path / "letters"), "--model", "1m", "--dry-run"
    lines = ctl(*start).out.splitlines()
    assert lines[-1] == "nothing was changed"
    begins = "would hold out 1 of 3 texts, "
    assert lines[-2].startswith(begins)
    assert ": one whole folder, file or row (" in lines[-2]
    assert json.loads(ctl(*start, "-o", "json").out)["foretold"] == [lines[-2]]


def test_a_training_says_what_it_would_take(daemon, ctl):
    sheet = ["Model 1m: d_model=128", "Expected 190 tokens/s, done in 29 min 11 s"]
    told = {"train": "a1" * 8, "model": "1m", "name": "letters", "sheet": sheet}
    daemon.results["dry_run"] = {"tried": "train.start", "foretold": told}
    shown = ctl("train", "start", "--data", "letters", "--model", "1m", "--dry-run")
    assert shown.out.splitlines()[-3:] == [*sheet, "nothing was changed"]


def test_more_rounds_say_how_long_the_last_one_took(daemon, ctl):
    lines = ["round 1 took 3 min 01 s: train 2 min 00 s", "2 rounds more like it: ~6 min 02 s"]
    told = {"cycle": "c0ffee0000000001", "rounds": 3, "from_round": 2, "was": "finished"}
    daemon.results["dry_run"] = {"tried": "cycle.extend", "foretold": told | {"lines": lines}}
    shown = ctl("cycle", "extend", "--rounds", "2", "--dry-run").out.splitlines()
    would = "cycle c0ffee00 would have 3 rounds, and go on with round 2"
    assert shown[-4:] == [would, *lines, "nothing was changed"]


def test_without_a_daemon_that_fails_too(ctl):
    assert ctl("cluster", "open", "--dry-run").exit_code == 3


def test_a_command_that_reads_has_no_such_option(ctl):
    assert ctl("status", "--dry-run").exit_code == 2


def test_what_would_be_ordered_cannot_steer_the_terminal(daemon, ctl):
    ran = ctl("cluster", "rename", "a\x1b[2J" + "b" * 999, "--dry-run")
    assert "\x1b" not in ran.out
    assert max(map(len, ran.out.splitlines())) < 350
