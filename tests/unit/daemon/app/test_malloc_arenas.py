"""The memory that C code takes."""

import ctypes
import platform
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, sys, threading
from jupiterd.daemon.app.malloc_arenas import share_one_arena
share_one_arena()
c = ctypes.CDLL(None)
barrier = threading.Barrier(4)
def use():
    barrier.wait()
    c.malloc(ctypes.c_size_t(100_000))
threads = [threading.Thread(target=use) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
sys.stdout.flush()
sys.stderr.flush()
c.malloc_info(0, ctypes.c_void_p.in_dll(c, "stdout"))
c.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")
def test_all_threads_share_one_arena() -> None:
    assert hasattr(ctypes.CDLL(None), "malloc_info")
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=15
    ).stdout
    assert told.count("<heap nr=") == 1, told
