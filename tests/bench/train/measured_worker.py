"""A worker process as the daemon starts it, which tells at its end how much memory it took.

Owns that last word: a file beside what the task wrote. Doesn't know tasks.
"""

import json
import os
import resource
import sys
from pathlib import Path

from jupiterd.workers import __main__ as worker

PEAK_VARIABLE = "JUPITER_BENCH_PEAK"
"""Names the file."""

_OF_MAXRSS = 1 if sys.platform == "darwin" else 1024
"""Bytes of what `getrusage` counts in."""


def peaks() -> dict[str, int]:
    """Return the highest that there was, in bytes: of the process, and of each engine's memory."""
    found = {"rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _OF_MAXRSS}
    if mlx := sys.modules.get("mlx.core"):
        found["mlx"] = int(mlx.get_peak_memory())
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        found["cuda"] = int(torch.cuda.max_memory_allocated())
    return found


if __name__ == "__main__":
    status = worker.main()
    Path(os.environ[PEAK_VARIABLE]).write_text(json.dumps(peaks()), encoding="utf-8")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
