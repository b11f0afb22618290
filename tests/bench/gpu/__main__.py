"""Measures what Jupiter does on a CUDA card: `python -m tests.bench.gpu [--only TEXT]`.

Owns the order of the parts and their limits: each runs in a process of its own, so that one which
fails or hangs costs the others nothing, and its memory is free afterwards. Ends with 2 where there
is no CUDA device. Doesn't know what a part measures.
"""

import argparse
import importlib.metadata
import os
import signal
import subprocess
import sys
import time

import torch

from tests.bench.figure import machine
from tests.bench.gpu.parts import PARTS
from tests.bench.gpu.row import Row, latest, markdown, rows_of

NO_DEVICE = "there is no CUDA device here, and all of these figures need one: not run"
MOST_S = 535.0
PACKAGES = ("torch", "transformers", "tokenizers", "numpy")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="parts whose name holds this text")
    parser.add_argument("--commit", default="", help="shown where git isn't there")
    chosen = parser.parse_args()
    if not torch.cuda.is_available():
        print(NO_DEVICE, file=sys.stderr)
        return 2
    print(machine())
    print(f"{torch.cuda.get_device_name()}, driver {driver()}, commit {chosen.commit or commit()}")
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES))
    ends_s = time.monotonic() + MOST_S
    rows = [row for name in PARTS if chosen.only in name for row in measured(name, ends_s)]
    print(markdown(rows))
    return int(any(row.value is None for row in rows))


def measured(name: str, ends_s: float) -> list[Row]:
    """Return what a part has measured; what it has printed before it failed counts, too."""
    left_s = min(PARTS[name].timeout_s, ends_s - time.monotonic())
    if left_s < 1:
        return [Row(name, None, note="no time was left")]
    began_s = time.monotonic()
    ran = run_part(name, left_s)
    took = f"{name}: {time.monotonic() - began_s:.0f} s"
    print(took, file=sys.stderr, flush=True)
    rows = latest(rows_of(ran.stdout))
    if ran.returncode:
        reason = (ran.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        rows.append(Row(name, None, note=reason.replace("|", "/")[:200]))
    return rows


def run_part(name: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a part to its end, or to its limit."""
    return run_bounded([sys.executable, "-m", "tests.bench.gpu.parts", name], timeout_s)


def run_bounded(command: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command; at its limit end it with all processes that it has started.

    What it has printed by then is kept, and the last line of stderr says that it was stopped.
    """
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            printed, complaints = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            printed, complaints = process.communicate()
            complaints += f"\nstopped after {timeout_s:.0f} s"
        return subprocess.CompletedProcess(command, process.returncode, printed, complaints)


def commit() -> str:
    """Return the commit that is measured, where git or the archive names one."""
    ran = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return ran.stdout.strip() or "unknown"


def driver() -> str:
    """Return the version of NVIDIA's driver."""
    ran = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
