"""The record of a launch while it runs: its process, its output, and how it ended.

Owns writing it. Writes nothing if there is no state folder of ours, because a script on this
machine alone needs no daemon.
"""

import os
import secrets
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jupiterd.errors import StateDirError
from jupiterd.processes.scripts.event_log import EventWriter
from jupiterd.processes.scripts.events import Over
from jupiterd.processes.scripts.record import (
    LAUNCHES,
    Launch,
    LaunchRecord,
    can_record,
    forget_old_records,
    records_in,
)

if TYPE_CHECKING:
    from jupiterd.ctl.launch.launch_request import LaunchRequest


class Recording:
    """The record of one launch; it may have no place on the disk."""

    def __init__(self, wanted: "LaunchRequest") -> None:
        self.id = secrets.token_hex(3)
        self.events: EventWriter | None = None
        self._wanted = wanted
        self._began_s = _now_s()
        self._record: LaunchRecord | None = None

    def open(self, stack: ExitStack, state_dir: Path) -> None:
        """Begin the record, if the state folder can hold it.

        Raises:
            StateDirError: the launch is detached, and couldn't be found without a record.
        """
        if not can_record(state_dir):
            if self._wanted.is_detached:
                raise StateDirError(
                    f"a launch can be detached only where it can be found again: {state_dir}",
                    "start a jupiterd there first, or name one that is yours with --state-dir",
                )
            return
        with suppress(OSError):
            record = LaunchRecord(state_dir / LAUNCHES / self.id)
            stack.callback(os.close, record.hold())
            forget_old_records(records_in(state_dir), _now_s())
            self.events = EventWriter(record.folder)
            stack.callback(self.events.close)
            self._record = record

    def began(self, nodes: Sequence[str], processes: int, restarts: int) -> None:
        """Record what runs in an attempt."""
        if self._record is None:
            return
        wanted = self._wanted
        launch = Launch(
            id=self.id,
            argv=wanted.argv,
            folder=str(wanted.folder),
            nodes=tuple(nodes),
            processes=processes,
            pid=os.getpid(),
            is_detached=wanted.is_detached,
            began_s=self._began_s,
            restarts=restarts,
        )
        self._record.write(launch)

    def ended(self, status: int, words: str) -> None:
        """Record how the launch ended."""
        if self.events is not None:
            self.events.append(Over(words))
        if self._record is not None:
            self._record.end(status, words, _now_s())


@contextmanager
def recording(wanted: "LaunchRequest", state_dir: Path) -> Generator[Recording]:
    """Yield the record of a launch, which is open until the block ends."""
    with ExitStack() as stack:
        record = Recording(wanted)
        record.open(stack, state_dir)
        yield record


def _now_s() -> float:
    return time.time()  # noqa: TID251 - for the age of a record
