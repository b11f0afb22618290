"""The daemon's log in a file."""

import logging
from pathlib import Path

from jupiterd.daemon.runtime.logs import FileHandler


def record(**more: object) -> logging.LogRecord:
    made = logging.LogRecord("jupiterd", logging.INFO, "", 0, "role_assigned", (), None)
    vars(made).update(more)
    return made


def test_a_line_has_the_day_and_steers_no_terminal(tmp_path: Path) -> None:
    handler = FileHandler(tmp_path / "jupiterd.log")
    handler.emit(record(node="beta\x1b[2J"))
    (line,) = (tmp_path / "jupiterd.log").read_text().splitlines()
    day, _, rest = line.partition(" ")
    assert [len(part) for part in day.split("-")] == [4, 2, 2]
    assert "info    role_assigned node=" in rest
    assert "\x1b" not in line


def test_a_folder_that_is_gone_stops_nothing(tmp_path: Path) -> None:
    handler = FileHandler(tmp_path / "gone" / "jupiterd.log")
    handler.emit(record())
    assert list(tmp_path.iterdir()) == []
