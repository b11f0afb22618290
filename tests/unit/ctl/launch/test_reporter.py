"""What is said where nobody reads what ranks print, or the disk is full."""

import errno
from typing import cast

import pytest

from jupiterd.ctl.launch.rank_output import RankOutput
from jupiterd.ctl.launch.reporter import LaunchReporter
from jupiterd.ctl.output.console import Console
from jupiterd.processes.scripts.events import Ended, Printed


class Notices:
    def __init__(self) -> None:
        self.said: list[str] = []

    def notice(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize(
    ("error", "why"),
    [(errno.EPIPE, "nobody reads it any more"), (errno.ENOSPC, "No space left on device")],
)
def test_that_what_ranks_print_cannot_be_written_is_said_once(error: int, why: str) -> None:
    def write(_line: bytes, _is_error: bool) -> None:
        raise OSError(error, "No space left on device")

    notices = Notices()
    reporter = LaunchReporter(RankOutput(write), cast("Console", notices))
    for step in range(3):
        reporter.take(Printed(0, is_error=False, data=b"iter %d\n" % step), "attic")
    reporter.take(Ended(0, 0), "attic")
    said = f"what the ranks print can't be written ({why}); the script goes on"
    assert notices.said == [said]
