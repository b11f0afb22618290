"""Ranks of an MLX ring that train engines step by step: `... ring_ranks SPEC.json`.

Owns forking the ranks, and what each does. The file says ring (an address for each rank), folder,
and runs, done one after another by the same processes: {name, shape, plan, partition, first_step,
steps, state, documents, counted}, or {exchanges: how many of random sizes}. After a run, rank 0
leaves FOLDER/NAME.safetensors with the losses, the norms and the whole state.
"""

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from safetensors.numpy import load_file, save_file

from jupiterd.cycle.training.partition.partition import Partition
from jupiterd.cycle.training.partition.pass_count import pass_count, slices
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.workers.train.batches import cut
from jupiterd.workers.train.mlx.made_engine import made_engine
from jupiterd.workers.train.mlx.partition.stretch_exchange import StretchExchange
from jupiterd.workers.train.mlx.ring import Ring
from jupiterd.workers.training_engine import MicroBatch

RATE = 1e-3
Run = dict[str, Any]


def sequences(run: Run, step: int) -> MicroBatch:
    """Return a whole step's batch."""
    shape, size = run["shape"], run["plan"]["batch_sequences"]
    rng = np.random.default_rng(1000 + step)
    tokens = rng.zipf(1.5, (size, shape["seq_len"] + 1)) % (shape["vocab_size"] - 1)
    documents = np.sort(rng.integers(0, 3, (size, shape["seq_len"])), axis=1)
    counted = rng.random((size, shape["seq_len"])) < 0.7
    return MicroBatch(
        tokens[:, :-1],
        tokens[:, 1:],
        documents if run.get("documents") else None,
        counted if run.get("counted") else None,
        int(counted.sum()) if run.get("counted") else 0,
    )


def parts_of(run: Run, step: int, rank: int, ranks: int) -> list[MicroBatch]:
    """Return a rank's micro batches: later ranks have more sequences, and all as many passes."""
    whole = sequences(run, step)
    size, micro = len(whole.inputs), run["plan"]["micro_batch_sequences"]
    total = ranks * (ranks + 1) // 2
    ends = [size * (r * (r + 1) // 2) // total for r in range(ranks + 1)]
    counts = [ends[r + 1] - ends[r] for r in range(ranks)]
    mine = cut(whole, slice(ends[rank], ends[rank + 1]))
    if not counts[rank]:
        return [mine] * pass_count(counts, [micro] * ranks)
    return [cut(mine, p) for p in slices(counts[rank], pass_count(counts, [micro] * ranks))]


def train(run: Run, ring: Ring, folder: Path) -> None:
    """Do one run."""
    partition = Partition.of(run["partition"]) if run.get("partition") else None
    shape, plan = ModelShape.from_plain(run["shape"]), TrainPlan.from_plain(run["plan"])
    engine = made_engine(shape, plan, 0, ring, partition)
    first = int(run.get("first_step", 0))
    if run.get("state"):
        named = load_file(run["state"])
        engine.load_weights(of_kind(named, "weight/"))
        engine.load_moments(of_kind(named, "moment/"), first)
    engine.begin(has_same_weights=bool(run.get("state")))
    losses, norms = list[float](), list[float]()
    for step in range(first, first + int(run["steps"])):
        share, norm = engine.step(parts_of(run, step, ring.rank, ring.world_size), RATE)
        losses.append(sum(each for (each,) in engine.gather([share])))
        norms.append(norm)
    nats = engine.nats(parts_of(run, 0, ring.rank, ring.world_size))
    told: dict[str, Any] = {"losses": np.array(losses), "norms": np.array(norms)}
    told["nats"] = np.array([sum(n for (n,) in engine.gather([nats]))])
    state: dict[str, Any] = {
        f"weight/{name}": np.array(values) for name, values in engine.each_weight()
    }
    state |= {f"moment/{name}": np.array(values) for name, values in engine.each_moment()}
    if ring.rank == 0:
        save_file({**state, **told}, folder / f"{run['name']}.safetensors")


def exchange(times: int, ring: Ring) -> None:
    """Exchange vectors of random sizes and cuts, and look at what comes."""
    rng, exchanges, ranks = np.random.default_rng(8), StretchExchange(ring), ring.world_size
    for _ in range(times):
        size = int(rng.integers(0, 10 ** rng.integers(1, 7)))
        inner = np.sort(rng.integers(0, size + 1, ranks - 1)) * (rng.random(ranks - 1) < 0.8)
        bounds = [0, *sorted(inner.tolist()), size]
        vectors = rng.integers(-1000, 1000, (ranks, size)).astype(np.float32)
        start, end = bounds[ring.rank : ring.rank + 2]
        found = exchanges.reduce(mx.array(vectors[ring.rank]), bounds)
        np.testing.assert_array_equal(np.array(found), vectors.sum(axis=0)[start:end])
        found = exchanges.gather(mx.array(vectors[0][start:end]), bounds)
        np.testing.assert_array_equal(np.array(found), vectors[0])


def of_kind(named: dict[str, Any], kind: str) -> dict[str, Any]:
    return {name.removeprefix(kind): v for name, v in named.items() if name.startswith(kind)}


def work(spec: dict[str, Any], rank: int) -> None:
    folder, ranks = Path(spec["folder"]), len(spec["ring"])
    ring = Ring(rank, ranks)
    if ranks > 1:
        (folder / str(rank)).mkdir(exist_ok=True)
        ring.form(spec["ring"], folder / str(rank))
    for run in spec["runs"]:
        if "exchanges" in run:
            exchange(run["exchanges"], ring)
        else:
            train(run, ring, folder)


def forked(spec: dict[str, Any], rank: int) -> int:
    if pid := os.fork():
        return pid
    status = 1
    try:
        work(spec, rank)
        status = 0
    except BaseException:  # noqa: BLE001 - it mustn't go on as the process it was forked from
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    told = json.loads(Path(sys.argv[1]).read_text())
    children = [forked(told, rank) for rank in range(len(told["ring"]))]
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    sys.exit(max(map(abs, ended)))
