"""How many files and connections this process may have open at once.

Owns raising that as far as the machine lets us: hundreds of connections and the files of a transfer
are more than the 256 that macOS begins with. Doesn't know who opens them.
"""

import contextlib
import resource

ENOUGH = 65_536
"""More only costs whoever walks through all of them, such as a child process that closes them."""


def allow_many_open_files() -> int:
    """Raise the soft limit to the hard one, or to what is enough; return what holds now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = wanted_limit(soft, hard)
    if wanted != soft:
        with contextlib.suppress(OSError, ValueError):  # macOS may refuse what it calls unlimited
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def wanted_limit(soft: int, hard: int) -> int:
    """Return the soft limit that is wanted; one that is higher already stays."""
    if soft == resource.RLIM_INFINITY:
        return soft
    highest = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    return max(soft, highest)
