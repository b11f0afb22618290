"""Programs that are run within bounds, whatever they say."""

import os
import sys
import time
import tracemalloc

import pytest

from jupiterd.workers.data.crawl.bounded_program import MAX_OUTPUT_BYTES, run

MUCH_BYTES = 64 << 20


def ran(program, timeout_s=60.0):
    return run((sys.executable, "-c", program), os.environ, 1 << 30, timeout_s)


def test_a_program_s_status_output_and_complaints_are_told():
    said = ran("import sys; print('out'); print('bad', file=sys.stderr); sys.exit(3)")
    assert said == (3, "out\n", "bad\n")


def test_its_input_is_empty():
    assert ran("import sys; print(len(sys.stdin.read()))") == (0, "0\n", "")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_of_endless_words_no_more_is_held_than_is_told(stream):
    program = (
        f"import sys; [sys.{stream}.write('x' * (1 << 20)) for _ in range({MUCH_BYTES >> 20})]"
    )
    tracemalloc.start()
    try:
        status, *said = ran(program)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert status == 0
    assert sorted(map(len, said)) == [0, MAX_OUTPUT_BYTES]
    assert most_bytes < MUCH_BYTES / 4


@pytest.mark.parametrize(
    "program",
    [
        "import time; time.sleep(60)",
        "import os, time; os.close(1); os.close(2); time.sleep(60)",
        "while True: print('x' * 1000)",
        "import subprocess; subprocess.run(['sleep', '60'])",
    ],
)
def test_it_is_ended_after_its_time_with_all_that_it_started(program):
    began_s = time.monotonic()
    with pytest.raises(TimeoutError, match=r"took longer than 0\.5 s"):
        ran(program, timeout_s=0.5)
    assert time.monotonic() - began_s < 30
