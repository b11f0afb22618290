"""The task `train_mlx`: one rank of an MLX ring, or the only one.

Owns the order of meeting and training. Doesn't know what is trained (`rank_training`). The ranks
meet before anything slow is imported: they dial each other for half a minute only.

params: rank, world_size, ring (host:port of each rank), member_hosts, and what `rank_training`
names
"""

import sys
from pathlib import Path

from jupiterd.protocol.frames import GangJoined, TaskFinished
from jupiterd.protocol.preparing_stage import IMPORTING, LOADING, MEETING
from jupiterd.workers.link import Task
from jupiterd.workers.train.mlx.ring import Ring

_MAPS = Path("/proc/self/maps")
_BLAS = "/libopenblas"

WITH_BLAS = "OpenBLAS preloaded"
WITHOUT_BLAS = "without OpenBLAS, about forty times slower; apt-get install libopenblas0-pthread"


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    ring = Ring(int(task.params.get("rank", 0)), int(task.params.get("world_size", 1)), task)
    if ring.world_size > 1:
        task.prepares(MEETING)
        ring.form(
            list(task.params["ring"]), task.output_dir, list(task.params.get("member_hosts") or ())
        )
    task.prepares(IMPORTING)
    from jupiterd.cycle.training.architectures import check_engine
    from jupiterd.workers.train.job import read_job
    from jupiterd.workers.train.mlx.made_engine import made_engine
    from jupiterd.workers.train.mlx.mlx_engine import device
    from jupiterd.workers.train.rank_training import RankTraining

    note = blas_note(device())
    print(f"rank {ring.rank} of {ring.world_size} on {device()}; {note}")  # noqa: T201 - our log
    task.send(GangJoined(device(), note))
    task.prepares(LOADING)
    job = read_job(task, ring.world_size)
    check_engine("mlx", job.shape)
    cut = job.partition or job.base_partition
    engine = made_engine(job.shape, job.plan, job.end_token, ring, cut)
    return RankTraining(task, job, engine).run()


def blas_note(device: str) -> str:
    """Return what multiplies matrices, where that is a question: MLX's Linux wheel needs help."""
    if sys.platform != "linux" or device != "cpu":
        return ""
    return WITH_BLAS if _BLAS in _MAPS.read_text(encoding="utf-8") else WITHOUT_BLAS
