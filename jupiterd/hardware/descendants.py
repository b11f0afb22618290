"""The memory of everything that a process has started.

Owns adding it up. Doesn't know how those processes are found, or what they do.
"""

from contextlib import suppress

import psutil

from jupiterd.source_filter.process_tree import descendants


def descendants_rss_bytes(pid: int) -> int:
    """Return the resident memory of all processes below this one, in sum; 0 where there are none.

    Raises:
        psutil.Error: that process is gone.
    """
    found = 0
    for below in descendants(pid):
        with suppress(psutil.Error):  # it has ended meanwhile
            found += psutil.Process(below).memory_info().rss
    return found
