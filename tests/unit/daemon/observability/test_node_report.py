"""The end of a daemon's log, as members may ask for it."""

import logging
from collections.abc import Iterator

import pytest

from jupiterd.daemon.observability.node_report import LogTail
from jupiterd.daemon.observability.report_wire import MAX_LINE_CHARACTERS, MAX_LINES

log = logging.getLogger("jupiterd.tests.node_report")


@pytest.fixture
def tail() -> Iterator[LogTail]:
    handler = LogTail()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield handler
    log.removeHandler(handler)


def test_the_latest_lines_are_kept_and_no_more(tail: LogTail) -> None:
    for number in range(MAX_LINES + 5):
        log.info("happened", extra={"number": number})
    assert len(tail.lines(MAX_LINES)) == MAX_LINES
    assert tail.lines(1)[0].endswith(f"happened number={MAX_LINES + 4}")
    assert tail.lines(0) == []


def test_no_line_is_long_or_steers_a_terminal(tail: LogTail) -> None:
    log.warning("told", extra={"a": "x" * 400, "b": "y" * 400, "c": "\x1b[2J"})
    (line,) = tail.lines(5)
    assert len(line) == MAX_LINE_CHARACTERS
    assert line.isprintable()


def test_what_is_below_the_daemons_level_is_not_kept(tail: LogTail) -> None:
    log.debug("whispered")
    assert tail.lines(5) == []


def test_a_traceback_is_kept_line_by_line(tail: LogTail) -> None:
    try:
        int("broken")
    except ValueError:
        log.exception("failed")
    found = tail.lines(50)
    assert " error   failed" in found[0]
    assert found[-1].startswith("ValueError: invalid literal")
