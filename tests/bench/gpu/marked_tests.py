"""The tests that need a CUDA device, marked `gpu`: how many pass, and which don't."""

import re
import subprocess
import sys
from collections.abc import Iterator

from tests.bench.gpu.row import Row

FILES = ("tests/unit/workers/train/torch/test_gpu.py", "tests/unit/hardware/test_nvidia.py")


def rows() -> Iterator[Row]:
    """Yield how many pass; what fails is named."""
    # A newer torch than the pinned one warns of what it will drop, which is no failure here.
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore", "-o", "filterwarnings=", "-rf")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *FILES],
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", last_line(ran.stdout))}
    failed = re.findall(r"^FAILED \S+::(\S+)", ran.stdout, re.MULTILINE)
    note = ", ".join(
        [f"{counts.get('skipped', 0)} skipped, {counts.get('failed', 0)} failed", *failed]
    )
    yield Row("tests marked gpu that pass", float(counts.get("passed", 0)), note=note)


def last_line(text: str) -> str:
    """Return the line in which pytest counts."""
    return (text.strip().splitlines() or [""])[-1]
