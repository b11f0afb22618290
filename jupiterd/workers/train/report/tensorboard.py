"""TensorBoard's event file of one run, written by the step that it tells of.

Owns the file's name and the form of its records. Whoever writes here hears of a full disk as
OSError, as with any other file: tensorboardX's own writer has a thread for this, which dies of a
full disk without a word, and then makes its caller wait for ever.
"""

import importlib
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def load_library() -> None:
    """Import what an event file is written with, where it is installed: 30 ms that a gang waits."""
    with suppress(ImportError):
        for name in ("record_writer", "proto.event_pb2", "proto.summary_pb2"):
            importlib.import_module(f"tensorboardX.{name}")


class EventFileWriter:
    """One event file; steps from `first_step` on that older files tell of don't count any more.

    Raises ImportError where tensorboardX isn't installed, OSError where nothing can be written.
    """

    def __init__(self, folder: Path, first_step: int) -> None:
        from tensorboardX.proto import event_pb2, summary_pb2

        self._messages: Any = {**vars(event_pb2), **vars(summary_pb2)}
        name = f"events.out.tfevents.{int(_wall_s())}.{socket.gethostname()}"
        self._file = (folder / name).open("ab")
        start: Any = self._messages["SessionLog"]
        self._append(file_version="brain.Event:2")
        self._append(step=first_step, file_version="brain.Event:2")
        self._append(step=first_step, session_log=start(status=start.START))
        self._file.flush()

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the scalars of a step, by their tags."""
        summary, value = self._messages["Summary"], self._messages["Summary"].Value
        for tag, number in values.items():
            scalar = value(tag=tag, simple_value=float(number))
            self._append(step=step, summary=summary(value=[scalar]))
        self._file.flush()

    def close(self) -> None:
        """Write what is left and close the file, which is closed even where that fails."""
        self._file.close()

    def _append(self, **fields: Any) -> None:
        event = self._messages["Event"](wall_time=_wall_s(), **fields)
        self._file.write(_record(event.SerializeToString()))


def _record(data: bytes) -> bytes:
    """Return bytes in the form of TFRecord: their length and they, each with its check sum."""
    from tensorboardX.record_writer import masked_crc32c

    size = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", masked_crc32c(part)) for part in (size, data)]
    return size + sums[0] + data + sums[1]


def _wall_s() -> float:
    return time.time()  # noqa: TID251 - TensorBoard shows it to people
