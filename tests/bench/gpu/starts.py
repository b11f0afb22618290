"""How long it takes from a cold process to the first step, with and without what is cached on disk.

Owns the two starts. The first finds an empty folder of compiled graphs, the second what the first
has left there.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.gpu.row import Row
from tests.bench.train.single import ours, preset, write_shards

SIZE, BATCH = "100m", (1, 8, 1024)
READY = "first step"


def rows() -> Iterator[Row]:
    """Yield the seconds of both starts."""
    with tempfile.TemporaryDirectory() as folder:
        shards = Path(folder) / "shards"
        write_shards(shards, preset(SIZE))
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "graphs")}
        for name in ("cold", "again"):
            began_s = time.monotonic()
            note = _first_step(shards, environment)
            took_s = time.monotonic() - began_s
            yield Row(f"{SIZE}, process start to first step, {name}", took_s, "s", note=note)


def _first_step(shards: Path, environment: dict[str, str]) -> str:
    """Run a process to its first step, and return how many threads it had by then."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.bench.gpu.starts", str(shards)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip().splitlines()[-1]


def main() -> None:
    """Take one step, and say how many threads this process has."""
    imported = _threads()
    ours(preset(SIZE), Path(sys.argv[1]), BATCH, "cuda")(1)
    print(f"{imported} threads after the imports, {_threads()} after the step")


def _threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


if __name__ == "__main__":
    main()
