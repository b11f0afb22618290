"""A nursery that also imports libraries which start threads as they are loaded.

As on machines with scipy and pyarrow, which transformers imports where they are: one more OpenBLAS,
from a file of its own, and pyarrow. Its workers' task says with how many threads they compute.
"""

import ctypes
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers import __main__ as entry
from jupiterd.workers import forkserver
from jupiterd.workers.link import Task

NAME = "count_threads"
MODULE = "tests.support.processes.threaded_nursery"
LIBRARIES: list[ctypes.CDLL] = []
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "JUST_FOR_THIS_ONE")


def load() -> None:
    """Load what starts threads, unless it is told not to."""
    import numpy as np
    import pyarrow as pa  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        (path,) = Path(np.__file__).parents[1].glob("numpy.libs/*openblas*")
        copy = shutil.copy(path, Path(folder) / "libother_openblas.so")
        LIBRARIES.append(ctypes.CDLL(str(copy)))


def run(task: Task) -> TaskFinished:
    """Write what this worker computes with into the file that `to` names."""
    import torch

    maps = Path("/proc/self/maps").read_text().splitlines()
    blas = {line.split()[-1] for line in maps if "numpy.libs" in line and "openblas" in line}
    told = {
        "torch": torch.get_num_threads(),
        "openblas": [_blas_threads(ctypes.CDLL(path)) for path in blas],
        "variables": {name: os.environ.get(name) for name in VARIABLES},
    }
    Path(str(task.params["to"])).write_text(json.dumps(told))
    return TaskFinished({})


def _blas_threads(library: ctypes.CDLL) -> int:
    return int(library.scipy_openblas_get_num_threads64_())


if __name__ == "__main__":
    entry.TASKS[NAME] = MODULE
    modules = (*forkserver.PRELOADED["torch"], f"{MODULE}:load")
    forkserver.PRELOADED = {"torch": modules}
    forkserver.main(sys.argv[1])
