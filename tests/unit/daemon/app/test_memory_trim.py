"""What a daemon's process gives back."""

import asyncio
import platform
import subprocess
import sys

import pytest

from jupiterd.daemon.app import memory_trim
from jupiterd.daemon.app.memory_trim import code_in

PREPARED = """
import ctypes, pathlib
from jupiterd.daemon.app.malloc_arenas import share_one_arena
from jupiterd.daemon.app.memory_trim import give_back, let_go_of_code
def kib(kind):
    rows = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(kind))
"""

FREED_BELOW_WHAT_IS_USED = """
share_one_arena()
c = ctypes.CDLL(None)
c.malloc.restype = ctypes.c_void_p
blocks = [c.malloc(ctypes.c_size_t(60_000)) for _ in range(200)]
for block in blocks:
    ctypes.memset(block, 1, 60_000)
c.malloc(ctypes.c_size_t(60_000))
for block in blocks:
    c.free(ctypes.c_void_p(block))
before = kib("RssAnon")
give_back()
print(before - kib("RssAnon"))
"""

CODE_OF_THE_START = """
import sqlite3, ssl
before = kib("RssFile")
let_go_of_code()
after = kib("RssFile")
assert sqlite3.connect(":memory:").execute("SELECT 6 * 7").fetchone() == (42,)
ssl.create_default_context()
print(before - after)
"""

only_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc's")
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="it is Linux's")


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
    found = list(code_in(rows))
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

    def let_go_of_code() -> None:
        turns[-1] += "code "

    def give_back() -> None:
        turns[-1] += "pages"
        turns.append("")
        if len(turns) > memory_trim.CODE_TURNS + 1:
            enough.set()

    monkeypatch.setattr(memory_trim, "GIVE_BACK_S", 0.001)
    monkeypatch.setattr(memory_trim, "give_back", give_back)
    monkeypatch.setattr(memory_trim, "let_go_of_code", let_go_of_code)
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        task = group.create_task(memory_trim.give_back_again_and_again())
        await enough.wait()
        task.cancel()
    assert turns[: memory_trim.CODE_TURNS + 1] == ["code pages", *["pages"] * 3, "code pages"]


def said_by(script: str) -> int:
    told = subprocess.run(
        [sys.executable, "-c", PREPARED + script],
        capture_output=True,
        text=True,
        check=True,
        timeout=15,
    )
    return int(told.stdout)
