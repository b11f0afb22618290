"""What a daemon's process takes of the machine, and gives back."""

import asyncio
import ctypes
import platform
import resource
import subprocess
import sys

import pytest

from jupiterd.daemon.app import process_resources
from jupiterd.daemon.app.process_resources import MAX_OPEN_FILES, code_ranges, useful_file_limit

UNLIMITED = resource.RLIM_INFINITY

FOUR_THREADS = """
import ctypes, sys, threading
from jupiterd.daemon.app.process_resources import use_one_malloc_arena
use_one_malloc_arena()
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

PREPARED = """
import ctypes, pathlib
from jupiterd.daemon.app.process_resources import (
    release_code, release_freed_pages, use_one_malloc_arena
)
def kib(kind):
    rows = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(kind))
"""

FREED_BELOW_WHAT_IS_USED = """
use_one_malloc_arena()
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
blocks = [c.malloc(ctypes.c_size_t(60_000)) for _ in range(200)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
c.malloc(ctypes.c_size_t(60_000))
for block in blocks:
    c.free(ctypes.c_void_p(block))
before = kib("RssAnon")
release_freed_pages()
print(before - kib("RssAnon"))
"""

CODE_OF_THE_START = """
import sqlite3, ssl
before = kib("RssFile")
release_code()
after = kib("RssFile")
assert sqlite3.connect(":memory:").execute("SELECT 6 * 7").fetchone() == (42,)
ssl.create_default_context()
print(before - after)
"""

only_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's")
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="it is Linux's")


@only_glibc
def test_all_threads_share_one_arena() -> None:
    assert hasattr(ctypes.CDLL(None), "malloc_info")
    arenas = subprocess.run(
        [sys.executable, "-c", FOUR_THREADS], capture_output=True, text=True, check=True, timeout=15
    ).stdout
    assert arenas.count("<heap nr=") == 1, arenas


@only_glibc
def test_what_was_freed_is_given_back_though_something_lies_above_it() -> None:
    assert said_by(FREED_BELOW_WHAT_IS_USED) > 8_000, "KiB of 12,000"


@only_linux
def test_code_that_runs_no_more_is_let_go_of_and_comes_back_when_it_runs() -> None:
    assert said_by(CODE_OF_THE_START) > 1_000


def test_only_code_and_constants_of_files_are_let_go_of() -> None:
    maps = [
        ("5581a0000000-5581a0001000 r--p 00000000 fe:00 1 /usr/bin/python3.11", 0),
        ("5581a0001000-5581a0003000 r-xp 00001000 fe:00 1 /usr/bin/python3.11", 0),
        ("5581a0003000-5581a0004000 rw-p 00003000 fe:00 1 /usr/bin/python3.11", 0),
        ("5581a0004000-5581a0005000 r--p 00003000 fe:00 1 /opt/relocated.so", 4),
        ("5581a0005000-5581a0006000 r-xp 00003000 fe:00 1 /opt/swapped.so", -4),
        ("5581a1000000-5581a1100000 rw-p 00000000 00:00 0 [heap]", 1024),
        ("7f0000000000-7f0000001000 r-xp 00000000 00:00 0", 0),
        ("7f0000001000-7f0000002000 r-xp 00000000 fe:00 2 /opt/patched.so", 4),
        ("7f0000002000-7f0000003000 rwxp 00000000 fe:00 2 /tmp/written to", 0),
        ("7f0000003000-7f0000004000 r-xp 00000000 fe:00 2 /opt/a b/libone.so", 0),
        ("7ffe00000000-7ffe00002000 r-xp 00000000 00:00 0 [vdso]", 0),
    ]
    rows = [
        row
        for head, written_kib in maps
        for row in (head, "Rss:      4 kB", *told(written_kib), "VmFlags: rd ex mr")
    ]
    found = list(code_ranges(rows))
    assert found == [
        (0x5581A0000000, 0x5581A0001000),
        (0x5581A0001000, 0x5581A0003000),
        (0x7F0000003000, 0x7F0000004000),
    ]


def told(written_kib: int) -> tuple[str, str]:
    """What is said of pages that were written to; below zero: of some that were swapped out."""
    return f"Anonymous:  {max(written_kib, 0)} kB", f"Swap:  {max(-written_kib, 0)} kB"


async def test_a_daemon_gives_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    enough, turns = asyncio.Event(), [""]

    def release_code() -> None:
        turns[-1] += "code "

    def release_freed_pages() -> None:
        turns[-1] += "pages"
        turns.append("")
        if len(turns) > process_resources.CODE_TURNS + 1:
            enough.set()

    monkeypatch.setattr(process_resources, "TRIM_EVERY_S", 0.001)
    monkeypatch.setattr(process_resources, "release_freed_pages", release_freed_pages)
    monkeypatch.setattr(process_resources, "release_code", release_code)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(process_resources.trim_memory_periodically())
        await enough.wait()
        task.cancel()
    assert turns[: process_resources.CODE_TURNS + 1] == ["code pages", *["pages"] * 3, "code pages"]


def said_by(script: str) -> int:
    told = subprocess.run(
        [sys.executable, "-c", PREPARED + script],
        capture_output=True,
        text=True,
        check=True,
        timeout=15,
    )
    return int(told.stdout)


@pytest.mark.parametrize(
    ("soft", "hard", "wanted"),
    [
        (256, 4096, 4096),
        (256, UNLIMITED, MAX_OPEN_FILES),
        (1024, 1 << 20, MAX_OPEN_FILES),
        (1 << 20, 1 << 20, 1 << 20),
        (UNLIMITED, UNLIMITED, UNLIMITED),
    ],
)
def test_the_limit_is_raised_as_far_as_it_may_be_and_never_lowered(
    soft: int, hard: int, wanted: int
) -> None:
    assert useful_file_limit(soft, hard) == wanted


def test_a_process_raises_its_own_limit() -> None:
    lines = (
        "import resource",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (128, 512))",
        "from jupiterd.daemon.app.process_resources import raise_open_file_limit",
        "print(raise_open_file_limit(), resource.getrlimit(resource.RLIMIT_NOFILE))",
    )
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "512 (512, 512)\n"
