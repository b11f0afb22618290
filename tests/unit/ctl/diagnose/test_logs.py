"""`jupiterctl logs`, with a daemon or without one."""

import json
import os
from pathlib import Path

import pytest

from jupiterd.ctl.diagnose import logs
from jupiterd.ctl.diagnose.log_tail import FollowedLog
from jupiterd.ctl.diagnose.node_log import overlap
from jupiterd.errors import DaemonUnreachableError


@pytest.fixture
def folder(state_dir: Path) -> Path:
    """A state folder's logs: the daemon's, and those of two workers, the second newer."""
    made = state_dir / "logs"
    made.mkdir()
    (made / "jupiterd.log").write_text("".join(f"line {n}\n" for n in range(100)))
    for age, name in ((20, "c0ffee-r1-train-0-train"), (10, "c0ffee-r2-train-0-train")):
        (made / f"{name}.log").write_text(f"{name} says this\x1b[2J\n")
        os.utime(made / f"{name}.log", (1_000_000 - age, 1_000_000 - age))
    (made / "c0ffee-r1-train-0-train.pid").write_text("1")
    return made


def test_the_last_lines_of_the_daemon_are_shown(folder, ctl):
    ran = ctl("logs", "-n", "2")
    assert (ran.exit_code, ran.out, ran.err) == (0, "line 98\nline 99\n", "")
    assert ctl("logs").out.count("\n") == 50


def test_a_worker_is_named_by_a_part_of_its_name_and_the_newest_is_meant(folder, ctl):
    assert ctl("logs", "train").out == "c0ffee-r2-train-0-train says this?[2J\n"
    assert ctl("logs", "r1-train").out.startswith("c0ffee-r1-train")


def test_logs_are_listed_the_newest_first(folder, ctl):
    names = ctl("logs", "--list").out.split()
    assert names == ["jupiterd", "c0ffee-r2-train-0-train", "c0ffee-r1-train-0-train"]
    assert json.loads(ctl("logs", "--list", "-o", "json").out)["logs"] == names


def test_scripts_get_lines(folder, ctl):
    document = json.loads(ctl("logs", "-n", "1", "-o", "json").out)
    assert document == {
        "schema": "jupiter/v1", "node": None, "log": "jupiterd", "lines": ["line 99"]
    }  # fmt: skip


def test_where_there_is_no_log_it_is_said_what_there_is(folder, ctl, state_dir):
    ran = ctl("logs", "gate")
    assert ran.exit_code == 6
    assert "such as jupiterd, c0ffee-r2-train-0-train" in ran.err
    assert ctl("--state-dir", str(state_dir / "none"), "logs").exit_code == 6


def test_following_goes_on_until_somebody_interrupts(folder, ctl, monkeypatch):
    comes = iter(["one more\n", "", None])

    def pause(_: float) -> None:
        if (text := next(comes)) is None:
            raise KeyboardInterrupt
        with (folder / "jupiterd.log").open("a") as file:
            file.write(text)

    monkeypatch.setattr(logs, "pause", pause)
    ran = ctl("logs", "-f", "-n", "1")
    assert (ran.exit_code, ran.out) == (130, "line 99\none more\n")


def test_a_file_that_is_exchanged_is_read_on_and_no_line_is_cut(tmp_path: Path):
    path = tmp_path / "jupiterd.log"
    path.write_text("a\nb\nhalf")
    tail = FollowedLog(path)
    assert tail.last(1) == ["b"]
    with path.open("a") as file:
        file.write(" done\n")
    assert tail.new() == ["half done"]
    path.replace(tmp_path / "jupiterd.log.1")
    assert tail.new() == []
    path.write_text("c\n")
    assert tail.new() == ["c"]
    assert FollowedLog(path).last(3) == ["b", "half done", "c"]


def test_what_was_written_last_before_a_file_was_exchanged_is_read_too(tmp_path: Path):
    path = tmp_path / "jupiterd.log"
    path.write_text("a\nb\nbeg")
    tail = FollowedLog(path)
    assert tail.last(5) == ["a", "b"]
    with path.open("a") as file:
        file.write("un\nlast of the old\n")
    path.replace(tmp_path / "jupiterd.log.1")
    path.write_text("first of the new\n")
    assert tail.new() == ["begun", "last of the old", "first of the new"]
    assert tail.new() == []


def test_a_file_exchanged_while_it_is_opened_shows_no_line_twice(tmp_path: Path, monkeypatch):
    path = tmp_path / "jupiterd.log"
    path.write_text("a\n")
    tail, opened = FollowedLog(path), Path.open

    def exchanged(self, *arguments, **more):
        file = opened(self, *arguments, **more)
        if self == path:
            monkeypatch.undo()
            path.replace(tmp_path / "jupiterd.log.1")
            path.write_text("b\n")
        return file

    monkeypatch.setattr(Path, "open", exchanged)
    assert tail.new() == ["a"]
    assert tail.new() == ["b"]


def test_tabs_are_shown_as_room(tmp_path: Path):
    path = tmp_path / "w.log"
    path.write_text("a\tb\n")
    assert FollowedLog(path).last(1) == ["a       b"]


def test_a_daemon_that_is_begun_anew_does_not_end_the_following_of_a_machine(
    daemon, ctl, monkeypatch
):
    from jupiterd.ctl import calls

    answers = iter([told("a"), DaemonUnreachableError("no jupiterd answers"), told("a", "b"), None])

    def ask(*_: object) -> object:
        if isinstance(answer := next(answers), Exception):
            raise answer
        if answer is None:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(calls, "ask", ask)
    monkeypatch.setattr(logs, "pause", lambda _: None)
    ran = ctl("logs", "--node", "beta", "-f")
    assert (ran.exit_code, ran.out.split()) == (130, ["a", "b"])
    assert ran.err.count("no jupiterd answers") == 1


def told(*lines: str, note: str = "") -> dict[str, object]:
    """Return the document of a machine that says these lines."""
    return {"node": {"name": "beta\x1b[2J"}, "log": list(lines) if lines else None, "note": note}


def test_another_machine_s_daemon_is_shown_as_the_one_here_is_told(daemon, ctl):
    daemon.documents["node"] = told("one", "two\x1b[2J", "three")
    assert ctl("logs", "--node", "beta", "-n", "2").out == "two?[2J\nthree\n"
    assert json.loads(ctl("logs", "--node", "beta", "-n", "1", "-o", "json").out) == {
        "schema": "jupiter/v1", "node": "beta?[2J", "log": "jupiterd", "lines": ["three"]
    }  # fmt: skip


def test_a_machine_that_tells_nothing_is_named_with_the_reason(daemon, ctl):
    daemon.documents["node"] = told(note="beta didn't answer in time")
    ran = ctl("logs", "--node", "beta")
    assert (ran.exit_code, ran.out) == (3, "")
    assert "beta?[2J doesn't send its log: beta didn't answer in time" in ran.err
    assert "hint: what is known of it: jupiterctl node show beta" in ran.err


def test_a_worker_s_log_is_not_read_from_another_machine(daemon, ctl):
    for more in (["r1-train"], ["--list"]):
        ran = ctl("logs", "--node", "beta", *more)
        assert (ran.exit_code, ran.out) == (2, "")


def test_following_another_machine_shows_each_line_once_and_says_when_it_is_silent(
    daemon, ctl, monkeypatch
):
    looks = iter(
        [
            told("a", "b", "b"),
            told("a", "b", "b", note="beta doesn't answer"),
            told("b", "b", "c", note="beta doesn't answer"),
            told("x"),
        ]
    )

    def pause(_: float) -> None:
        if (document := next(looks, None)) is None:
            raise KeyboardInterrupt
        daemon.documents["node"] = document

    daemon.documents["node"] = told("a", "b")
    monkeypatch.setattr(logs, "pause", pause)
    ran = ctl("logs", "--node", "beta", "-f")
    assert (ran.exit_code, ran.out.split()) == (130, ["a", "b", "b", "c", "x"])
    assert ran.err.count("beta doesn't answer") == 1


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ([], ["a"], 0),
        (["a"], ["a"], 1),
        (["a", "b"], ["b", "c"], 1),
        (["a", "a"], ["a", "a", "a"], 2),
        (["a", "b"], ["c"], 0),
        (["a", "b"], [], 0),
    ],
)
def test_what_was_seen_before_is_found_where_the_window_moved_on(before, after, same):
    assert overlap(before, after) == same
