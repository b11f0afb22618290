"""Tokens per second of 25m by micro batch: of some sizes, of the default, and of what is tried.

Owns asking for the last two as a rank does. Doesn't know how a size is measured (`loops`).
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from jupiterd.cycle.micro_batches.device_default import (
    default_micro_batch,
    guessed_flops_per_s,
)
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive
from jupiterd.workers.train.micro_batch_probe import MicroBatchProbe, ProbeSetup
from jupiterd.workers.train.torch.device import abilities, gpus_of, peak_of
from jupiterd.workers.train.torch.process_group import ProcessGroup
from jupiterd.workers.train.torch.torch_engine import TorchEngine
from tests.bench.gpu.loops import SEQ_LEN, our_rate
from tests.bench.gpu.row import Row
from tests.bench.train.single import preset, write_shards
from tests.support.workers.tiny_run import TaskAlone

SIZES = (8, 32, 64)
DEVICE = "cuda"


def rows() -> Iterator[Row]:
    """Yield them; the last two name the size, and what is tried has the default beside it."""
    model = preset("25m")
    plan = filled(model, derive(model, 1))
    batch, default = plan.batch_sequences, plan.micro_batch_sequences
    rates: dict[int, tuple[float, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_shards(Path(folder) / "shards", model)

        def rate_of(size: int) -> tuple[float, str]:
            if size not in rates:
                step = batch // size, size, SEQ_LEN
                rates[size] = our_rate(model, Path(folder) / "shards", step)
            return rates[size]

        for size in SIZES:
            rate, note = rate_of(size)
            what = f"25m, {batch // size} x {size} sequences"
            yield Row(what, rate, "tokens/s", note=note)
        tried, took_s = tried_on_the_card(model, plan, Path(folder))
        rate, note = rate_of(tried)
        what = f"25m, {tried} at a time as tried, beside the default of {default}"
        told = f"tried for {took_s:.1f} s; {note}"
        yield Row(what, rate, "tokens/s", other=rate_of(default)[0], note=told)


def filled(model: ModelShape, plan: TrainPlan) -> TrainPlan:
    """Return the plan with the default of this card."""
    flops_per_s = guessed_flops_per_s(abilities(DEVICE), peak_of(gpus_of(DEVICE)))
    size = default_micro_batch(model, plan, abilities(DEVICE), flops_per_s)
    return plan.model_copy(update={"micro_batch_sequences": size})


def tried_on_the_card(model: ModelShape, plan: TrainPlan, folder: Path) -> tuple[int, float]:
    """Return what a rank would take, without a file of what was found before, and the seconds."""
    engine = TorchEngine(model, plan, 0, ProcessGroup(0, 1), DEVICE)
    task = TaskAlone("train", {}, {}, folder / "out")
    began_s = time.monotonic()
    setup = ProbeSetup(model, plan, plan.steps, may_search=True)
    found = MicroBatchProbe(task, engine, setup).chosen()
    took_s = time.monotonic() - began_s
    del engine
    torch.cuda.empty_cache()
    return found, took_s
