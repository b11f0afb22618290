"""Python's garbage collector, held back while a ledger or a library is loaded.

Owns this one switch. A hundred thousand facts hang together in no cycles, and looking for some
again and again while they are made takes three times as long as making them; of an engine's
libraries, a fifth of the time.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Generator[None, None, None]:
    """Look for no garbage in the meantime; what is there at the end is never looked at again.

    Processes that are forked afterwards share its pages for good.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
