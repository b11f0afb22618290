"""The task `train`: one rank of a torch gang, or the only one.

Owns the order of meeting and training. Doesn't know what is trained (`rank_training`).

params: device, and what `rank_training` and `group` name
"""

from jupiterd.protocol.frames import GangJoined, TaskFinished
from jupiterd.protocol.preparing_stage import LOADING, MEETING
from jupiterd.workers.link import Task
from jupiterd.workers.train.job import TrainingJob, read_job
from jupiterd.workers.train.rank_training import RankTraining
from jupiterd.workers.train.torch.partition.cut_base_engine import CutBaseTorchEngine
from jupiterd.workers.train.torch.partition.partitioned_engine import PartitionedTorchEngine
from jupiterd.workers.train.torch.process_group import ProcessGroup, open_group
from jupiterd.workers.train.torch.torch_engine import TorchEngine


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    if int(task.params.get("world_size", 1)) > 1:
        task.prepares(MEETING)
    with open_group(task) as group:
        device = str(task.params.get("device", "cpu"))
        task.send(GangJoined(device, ""))
        task.prepares(LOADING)
        job = read_job(task, group.world_size)
        return RankTraining(task, job, engine_of(job, group, device)).run()


def engine_of(job: TrainingJob, group: ProcessGroup, device: str) -> TorchEngine:
    """Return the engine of a rank that holds its part of a model, or all of it."""
    what = (job.shape, job.plan, job.end_token, group, device)
    if job.base_partition is not None:
        return CutBaseTorchEngine(*what, job.base_partition)
    if job.partition is None:
        return TorchEngine(*what)
    return PartitionedTorchEngine(*what, job.partition)
