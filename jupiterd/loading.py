"""What Ctrl-C means while a program's own modules are still being imported.

Owns that moment alone; nothing has begun that would have to be ended. Doesn't know any program.
"""

import signal
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
