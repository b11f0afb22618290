"""The task `check_sync`: whether the ranks of a gang can sum what they have.

Owns the vectors, and what is measured. Meets the others as a gang that trains does (`group`,
`ring`); doesn't know what is trained.

params: rank, world_size, engine, ring, member_hosts, size_bytes, and what `group` names
"""

import time
from collections.abc import Callable

import numpy as np

from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.link import Task

KNOWN_LENGTH = 1024
ROUNDS = 3

Sum = Callable[[np.ndarray], np.ndarray]
"""Adds up what all ranks have."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    return _over_ring(task) if task.params["engine"] == "mlx" else _over_torch(task)


def _over_torch(task: Task) -> TaskFinished:
    import torch

    from jupiterd.workers.train.torch.process_group import open_group

    with open_group(task) as group:
        device = group.device

        def add(vector: np.ndarray) -> np.ndarray:
            shared = torch.from_numpy(vector).to(device)
            if group.world_size > 1:
                torch.distributed.all_reduce(shared)
            return shared.cpu().numpy()

        return _measured(task, group.rank, group.world_size, device, add)


def _over_ring(task: Task) -> TaskFinished:
    import mlx.core as mx

    from jupiterd.workers.train.mlx.mlx_engine import device
    from jupiterd.workers.train.mlx.ring import Ring

    ring = Ring(int(task.params["rank"]), int(task.params["world_size"]), task)
    if ring.world_size > 1:
        members = list(task.params.get("member_hosts") or ())
        ring.form(list(task.params["ring"]), task.output_dir, members)

    def add(vector: np.ndarray) -> np.ndarray:
        mean = ring.average({"known": mx.array(vector)})["known"]
        return np.array(mean) * np.float32(ring.world_size)

    return _measured(task, ring.rank, ring.world_size, device(), add)


def known(rank: int, length: int) -> np.ndarray:
    """Return what one rank has; no other rank has the same."""
    return np.arange(length, dtype=np.float32) % 64 + rank


def _measured(task: Task, rank: int, world: int, device: str, add: Sum) -> TaskFinished:
    expected = np.sum([known(other, KNOWN_LENGTH) for other in range(world)], axis=0)
    found = add(known(rank, KNOWN_LENGTH))  # the first one also makes the connections
    began_s = time.perf_counter()
    for _ in range(ROUNDS):
        add(known(rank, KNOWN_LENGTH))
    small_s = (time.perf_counter() - began_s) / ROUNDS
    length = int(task.params["size_bytes"]) // 4
    large = known(rank, length)
    began_s = time.perf_counter()
    summed = add(large)
    large_s = time.perf_counter() - began_s
    # The mean of a ring is rounded once; one wrong addend is a thousand times more than that.
    is_right = np.allclose(found, expected, rtol=1e-5) and np.allclose(
        summed[:KNOWN_LENGTH], expected[:length], rtol=1e-5
    )
    # What each rank sends in a ring, whichever way it is really added up.
    sent_bits = 2 * (world - 1) / world * length * 4 * 8
    return TaskFinished(
        {},
        counts={
            "is_right": float(is_right),
            "time_ms": small_s * 1000,
            "mbit_per_s": sent_bits / large_s / 1e6 if world > 1 else 0.0,
        },
        summary={"device": device},
    )
