"""The ranks of a torch gang, as its engine sees them.

Owns meeting the others, sharing gradients and telling each other numbers. Doesn't know batches
or models' insides. A group of one meets nobody and shares nothing.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import torch
from torch import nn

from jupiterd.workers.link import Task
from jupiterd.workers.train.rank_listener_filter import closed_to_strangers
from jupiterd.workers.train.torch.device import use_device
from jupiterd.workers.train.torch.link_local import read_on_link
from jupiterd.workers.train.torch.nccl import GLOO, NCCL, meet_over_nccl
from jupiterd.workers.train.torch.rank_store import GLOO_ASKS_AT_ONCE, RankStore

_NEVER_DESTROYED: list[object] = []
"""Process groups and what refers to them, until the process ends.

Destroying one joins gloo's threads while it holds Python's lock, and a thread that is just letting
go of a finished collective waits for that lock: a deadlock, once in a few runs.
"""

MEETING_TIMEOUT_S = 60.0
"""How long a rank waits for the others, at the start and in every step."""


class ProcessGroup:
    """This rank and its peers."""

    def __init__(self, rank: int, world_size: int, backend: str = "", device: str = "cpu") -> None:
        self.rank = rank
        self.world_size = world_size
        self.backend = backend
        self.device = device if backend == NCCL else "cpu"
        """Where what is summed must lie."""
        self._shared: nn.parallel.DistributedDataParallel | None = None

    def join(self, model: nn.Module, *, has_same_weights: bool = False) -> nn.Module:
        """Return the model to call: all ranks begin with rank 0's weights and sum gradients.

        has_same_weights: nothing is sent; a rank that has none yet gets them elsewhere
        """
        if self.world_size == 1:
            return model
        self._shared = nn.parallel.DistributedDataParallel(
            model,
            gradient_as_bucket_view=True,
            broadcast_buffers=False,
            init_sync=not has_same_weights,
        )
        _NEVER_DESTROYED.append(self._shared)
        return self._shared

    def accumulating(self, *, is_last: bool) -> AbstractContextManager[None]:
        """Enter around a micro batch: gradients are summed over the ranks with the last one."""
        if self._shared is None or is_last:
            return nullcontext()
        return self._shared.no_sync()

    def gather(self, values: Sequence[float]) -> Sequence[Sequence[float]]:
        """Return what each rank has given, the same on all of them."""
        if self.world_size == 1:
            return [list(values)]
        rows = torch.zeros(self.world_size, len(values), dtype=torch.float64, device=self.device)
        rows[self.rank] = torch.tensor(values, dtype=torch.float64, device=self.device)
        torch.distributed.all_reduce(rows)
        return rows.tolist()


@contextmanager
def open_group(task: Task) -> Generator[ProcessGroup]:
    """Meet the other ranks at the attempt's store; leave them at the end.

    params: rank, world_size, backend, device, first_host, member_hosts, timeout_s

    Raises:
        NcclFailedError: the ranks can't sum over NCCL.
        TimedOutError: a rank hasn't come.
        JupiterError: the store can't be reached.
    """
    params = task.params
    backend, device = str(params.get("backend") or GLOO), str(params.get("device", "cpu"))
    use_device(device)
    group = ProcessGroup(
        int(params.get("rank", 0)), int(params.get("world_size", 1)), backend, device
    )
    if group.world_size == 1:
        yield group
        return
    timeout = timedelta(seconds=float(params.get("timeout_s", MEETING_TIMEOUT_S)))
    os.environ.setdefault(GLOO_ASKS_AT_ONCE, "1")
    store = RankStore(task.ask_store, timeout)
    read = read_on_link(store, str(params.get("first_host", "")))
    _NEVER_DESTROYED.extend(
        (store, read)
    )  # what is written in Python, torch's C++ doesn't keep alive
    meet: dict[str, Any] = {
        "store": read,
        "rank": group.rank,
        "world_size": group.world_size,
        "timeout": timeout,
    }
    with closed_to_strangers(list(params.get("member_hosts") or ()), task.send) as have_met:
        if backend == NCCL:
            meet_over_nccl(meet, device, task.give_up)
        else:
            torch.distributed.init_process_group(backend, **meet)
        have_met()
        _NEVER_DESTROYED.append(torch.distributed.group.WORLD)
        try:
            yield group
        finally:
            torch.distributed.destroy_process_group()
