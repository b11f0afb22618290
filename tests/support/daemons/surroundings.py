"""Where a test's daemons run: a network of their own, or this machine's in a scope of their own.

Owns that choice. Daemons on one loopback interface find each other by multicast, and fresh clusters
unite: those of two tests must not meet.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence

# The holder of a namespace ends with us, whatever becomes of us: it reads until its input closes.
_HOLD = "ip link set lo up multicast on && echo ready && exec cat"


@contextlib.contextmanager
def own_network() -> Generator[Sequence[str]]:
    """Yield what a command begins with to run in the test's network."""
    holder = _hold_namespace()
    if holder is None:
        yield ("env", f"JUPITER_SCOPE=test-{secrets.token_hex(4)}")
        return
    try:
        yield ("nsenter", f"--net=/proc/{holder.pid}/ns/net", "--")
    finally:
        holder.communicate()


def _hold_namespace() -> subprocess.Popen[bytes] | None:
    """Make a network namespace that lasts as long as the process returned; None where we can't."""
    tools = ("unshare", "nsenter", "ip")
    if sys.platform != "linux" or os.getuid() or not all(map(shutil.which, tools)):
        return None
    holder = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", _HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    if holder.stdout is not None and holder.stdout.readline() == b"ready\n":
        return holder
    holder.communicate()
    return None
