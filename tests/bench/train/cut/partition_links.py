"""How fast two machines train a model that is cut over them, by what their link carries.

`make bench-train ONLY=shards`, as root, on Linux, or with GBIT/S ...:
python -m tests.bench.train.cut.partition_links

Owns the machines, which are network namespaces joined by a shaped link, and the table. Each way to
train is a gang of its own, so a rank's peak is that way's alone. Bytes are those that came out of
the wire, headers too.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import torch

from jupiterd.cycle.training.engine_options import DeviceAbilities
from jupiterd.cycle.training.memory import memory_need
from jupiterd.cycle.training.partition.partition_memory import need_of_part
from jupiterd.workers.train.torch.process_group import ProcessGroup
from tests.bench.artifacts.stations import GBIT, shape
from tests.bench.train.partition_speed import (
    LAYERS,
    SEQ_LEN,
    SEQUENCES,
    SIZE,
    STEPS,
    TURNS,
    TorchsOwn,
    engine_of,
    plan_of,
    shape_of,
    timed,
)
from tests.support.network.lab import Host, interface, lab_of, why_there_is_no_lab
from tests.support.network.links import THROTTLE

RANKS = 2
PARTS = (1,) * RANKS
SPEEDS = (1, 10)
"""Gbit/s."""
FSDP2 = -1
WHOLE = 0
WAYS = {FSDP2: "FSDP2", WHOLE: "whole replicas (DDP)", 1: "stage 1", 2: "stage 2", 3: "stage 3"}
"""Number -> name; those from 1 on are stages."""
TIMEOUT_S = 300.0
FIRST_PORT = 29_500
MIB = 1 << 20

_ports = count(FIRST_PORT)


def print_links(speeds: Sequence[int] = SPEEDS) -> None:
    """Train over links of these speeds, and print what became of it."""
    if why := why_there_is_no_lab((THROTTLE,)):
        print(f"a model cut over machines, by link: not run, {why}")
        return
    for gbits in speeds:
        with lab_of(RANKS) as lab:
            for host in lab.hosts:
                shape(host, gbits * GBIT)
            found = {way: over(lab.hosts, way) for way in WAYS}
        for way, (tokens, sent_mb, peak) in found.items():
            beside = f"{tokens / found[FSDP2][0]:.2f} x FSDP2, {tokens / found[WHOLE][0]:.2f} x DDP"
            print(
                f"{SIZE} of {LAYERS} layers over {RANKS} machines at {gbits} Gbit/s, {WAYS[way]}: "
                f"{tokens:,.0f} tokens/s, {beside}; {sent_mb:.0f} MB a step, peak "
                f"{peak / MIB:,.0f} MiB{beside_plan(way, peak)}",
                flush=True,
            )


def over(hosts: Sequence[Host], way: int) -> tuple[float, float, int]:
    """Return tokens/s, megabytes that a rank receives in a step, and the highest peak in bytes."""
    meeting = f"tcp://{hosts[0].address}:{next(_ports)}"
    ranks = [_started(host, rank, way, meeting) for rank, host in enumerate(hosts)]
    told = [json.loads(rank.communicate()[0].splitlines()[-1]) for rank in ranks]
    took_s = max(one["step_s"] for one in told)
    tokens = SEQUENCES * SEQ_LEN * len(hosts) / took_s
    return tokens, max(one["mb"] for one in told), max(one["peak"] for one in told)


def beside_plan(way: int, peak: int) -> str:
    """Say how a peak compares with what is planned; nothing of what isn't planned here."""
    if way == FSDP2:
        return ""
    device = DeviceAbilities("torch", "cpu", 0)
    need = memory_need(
        shape_of(), plan_of(RANKS), "fp32", gradient_checkpointing=False, device=device
    )
    if way != WHOLE:
        need = need_of_part(need, shape_of(), way, 1 / RANKS, RANKS)
    # What a checkpoint copies isn't there: none is written.
    planned = need.total - (need.copies if way == WHOLE else 0)
    return f", planned {planned / MIB:,.0f}: {planned / peak:.2f} x"


def _started(host: Host, rank: int, way: int, meeting: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.bench.train.cut.partition_links", "rank"]
    return subprocess.Popen(
        [*host.inside.prefix, *command, str(rank), str(way), meeting],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "GLOO_SOCKET_IFNAME": interface(0), "OMP_NUM_THREADS": "1"},
    )


def rank_of(rank: int, way: int, meeting: str) -> dict[str, Any]:
    """Train as one rank; return what was measured."""
    torch.set_num_threads(1)
    timeout = timedelta(seconds=TIMEOUT_S)
    torch.distributed.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=RANKS, timeout=timeout
    )
    group = ProcessGroup(rank, RANKS)
    if way == FSDP2:
        step = TorchsOwn(group).step
    else:
        engine = engine_of(group, way, PARTS)

        def step(batches: Any) -> object:
            return engine.step(batches, 1e-4)

    timed(step, group)
    before, steps = received_bytes(), STEPS * TURNS
    began_s = time.perf_counter()
    for _ in range(TURNS):
        timed(step, group)
    took_s = time.perf_counter() - began_s
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    mb = (received_bytes() - before) / steps / 1e6
    return {"step_s": took_s / steps, "mb": mb, "peak": peak}


def received_bytes() -> int:
    """Return what has come in from the other machines until now."""
    rows = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    (row,) = (row for row in rows if row.strip().startswith(f"{interface(0)}:"))
    return int(row.partition(":")[2].split()[0])


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        print(json.dumps(rank_of(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])), flush=True)
        os._exit(0)  # gloo's threads may hold Python's lock at an ordinary end
    print_links([*map(int, sys.argv[1:])] or SPEEDS)
