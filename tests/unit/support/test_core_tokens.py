"""Tests that run at once take hardly more cores than there are."""

import contextlib
import multiprocessing
import threading
from pathlib import Path

from tests.support.core_tokens import OF_A_CORE, SPARE, CoreTokens

WITHIN_S = 30.0
MOMENT_S = 0.2


def hold(folder: Path, count: int, has: threading.Event, may_end: threading.Event) -> None:
    with contextlib.closing(CoreTokens(folder, 1)) as tokens, tokens.taken(count):
        has.set()
        may_end.wait()


def holding(folder: Path, count: int) -> tuple[threading.Event, threading.Event]:
    """Take tokens of one core in a thread; return what says that it has them, and its end."""
    has, may_end = threading.Event(), threading.Event()
    threading.Thread(target=hold, args=(folder, count, has, may_end), daemon=True).start()
    return has, may_end


def test_parts_are_taken_at_once_and_a_whole_waits_for_all_of_them(tmp_path: Path) -> None:
    parts = [holding(tmp_path, 1) for _ in range(OF_A_CORE + SPARE)]
    for has, _ in parts:
        assert has.wait(WITHIN_S)
    has, end = holding(tmp_path, OF_A_CORE + SPARE)
    for _, may_end in parts:
        assert not has.wait(MOMENT_S)
        may_end.set()
    assert has.wait(WITHIN_S)
    end.set()


def test_who_wants_more_than_there_is_has_all_of_it(tmp_path: Path) -> None:
    has, end = holding(tmp_path, 10 * OF_A_CORE)
    assert has.wait(WITHIN_S)
    end.set()


def test_a_process_that_is_killed_leaves_its_tokens(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    has, never = spawn.Event(), spawn.Event()
    process = spawn.Process(target=hold, args=(tmp_path, OF_A_CORE + SPARE, has, never))
    process.start()
    assert has.wait(WITHIN_S)
    process.kill()
    process.join()
    has, end = holding(tmp_path, OF_A_CORE + SPARE)
    assert has.wait(WITHIN_S)
    end.set()
