"""What `collect` leaves of a source that was purged by its name: the outputs it has, all empty.

Owns that, and the count that says so in the ledger. Doesn't know sources; nothing is fetched.
"""

from pathlib import Path

from jupiterd.cycle.purge_counts import NOT_COLLECTED_COUNT
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.previous import write_state
from jupiterd.workers.data.sample_file import SampleWriter
from jupiterd.workers.data.skips import SkipLog


def not_collected(source: str, output: Path) -> TaskFinished:
    """Write empty outputs, and say for which source."""
    with (
        SampleWriter(output / "train"),
        SampleWriter(output / "holdout"),
        SkipLog(output / "skipped"),
    ):
        write_state(output / "state", ())
    names = ("train", "holdout", "state", "skipped")
    return TaskFinished({name: name for name in names}, {NOT_COLLECTED_COUNT + source: 1})
