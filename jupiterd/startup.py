"""What holds before a program's own modules are imported: what Ctrl-C means, and open streams.

Owns that moment alone; nothing has begun that would have to be ended. Doesn't know any program.
"""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def ends_at_ctrl_c() -> Generator[None]:
    """End at once and without a word, as other programs do, where Python would show a traceback."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def open_standard_streams() -> None:
    """Open those that whoever started us has closed, on nothing.

    Else what is opened first takes their place, and gets what somebody prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)  # the lowest that is free
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8"))
