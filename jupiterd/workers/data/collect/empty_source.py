"""What `collect` leaves of a source that was purged by its name: the outputs it has, all empty.

Owns that, and the count that says so in the ledger. Doesn't know sources; nothing is fetched.
"""

from collections.abc import Sequence
from pathlib import Path

from jupiterd.cycle.base.purge_counts import NOT_COLLECTED_COUNT
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.collect.previous_round import write_state
from jupiterd.workers.data.skips import SkipLog
from jupiterd.workers.samples.sample_file import SampleWriter


def not_collected(source: str, output: Path, of_text: Sequence[str]) -> TaskFinished:
    """Write empty outputs, and say for which source.

    of_text: the outputs that hold samples
    """
    for name in of_text:
        with SampleWriter(output / name):
            pass
    with SkipLog(output / "skipped"):
        write_state(output / "state", ())
    names = (*of_text, "state", "skipped")
    return TaskFinished({name: name for name in names}, {NOT_COLLECTED_COUNT + source: 1})
