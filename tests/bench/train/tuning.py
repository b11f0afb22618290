"""Full tuning of a real model beside rivals: tokens/s by the clock and by processor time.

Owns who is measured against whom. Each takes a few steps in a process of its own, in turn, round
after round, so that a busy machine hits them alike; a ratio is the median over the rounds. All have
the same text, threads and environment, fp32 and AdamW. The rivals are Hugging Face's Trainer, and
mlx-lm's `lora --fine-tune-type full`, which leaves embeddings and the last norm as they are and so
computes a twelfth less; what its trainer does with all of them is shown beside.
"""

import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jupiterd.cycle.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.tuning import tuned, tuning_rate
from jupiterd.daemon.model_files import text_of_config
from jupiterd.gang.environment import worker_environment
from tests.bench.train.moment import Moment, now
from tests.real.smollm2 import NotInTheIndexError, model_folder

ROOT = Path(__file__).resolve().parents[3]
SEQ_LEN, SEQUENCES = 256, 4
WARM_STEPS, STEPS = 1, 2
MOST_ROUNDS = 3
OURS, TRAINER = "ours", "Trainer"
FULL, EVERYTHING = "mlx_lm full", "mlx_lm full, embeddings too"
RIVALS = {"torch": {TRAINER: 1.0}, "mlx": {FULL: 0.95, EVERYTHING: 0.95}}
"""Engine -> who else tunes on it, and how many times as fast as they we are to be."""
MICRO_BATCHES = {"torch": 4, "mlx": 1}
"""Of a step: on torch as `train start` has them; mlx-lm adds up none by itself."""
LIBRARIES = {"torch": ("torch", "transformers", "accelerate"), "mlx": ("mlx", "mlx-lm")}


def shape_of(folder: Path) -> ModelShape:
    config = (folder / "config.json").read_text(encoding="utf-8")
    return tuned(parse_model(text_of_config(folder.name, config, SEQ_LEN)))


def plan_of(shape: ModelShape, engine: str) -> TrainPlan:
    size = SEQUENCES // MICRO_BATCHES[engine]
    changes = {"batch_sequences": SEQUENCES, "micro_batch_sequences": size}
    return derive(shape, 1).model_copy(update=changes)


def write_text(folder: Path, model: Path) -> None:
    """Write Jupiter's own pages as tokens, as shards, and as the rows that mlx-lm reads."""
    import numpy as np

    from jupiterd.workers.data.shards import ShardWriter
    from jupiterd.workers.data.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(model)
    text = "\n".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md")))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    np.array(ids, dtype=np.uint16).tofile(folder / "tokens.bin")
    writer = ShardWriter(folder / "shards", tokenizer.get_vocab_size())
    writer.append(ids)
    writer.finish(seq_len=SEQ_LEN, tokenizer_hash="", documents=1, size_bytes=len(text))
    length = 2 * SEQ_LEN  # or a row that is cut in another place may be too short
    rows = [tokenizer.decode(ids[at : at + length]) for at in range(0, len(ids) - length, length)]
    lines = "".join(json.dumps({"text": row}) + "\n" for row in rows)
    for name in ("train", "valid"):
        (folder / f"{name}.jsonl").write_text(lines)


def ours(engine_name: str, model: Path, data: Path, steps: int) -> Sequence[Moment]:
    """Take steps as a rank does, but for what it tells its daemon."""
    from jupiterd.workers.data.shards import ShardSet
    from jupiterd.workers.train.batches import Batches
    from jupiterd.workers.train.checkpoint import load_weights
    from jupiterd.workers.train.loop import TrainingLoop
    from tests.bench.train.vocabulary import engine_of

    shape = shape_of(model)
    plan = plan_of(shape, engine_name)
    engine = engine_of(engine_name, shape, plan)
    load_weights(model, engine)
    engine.begin(has_same_weights=True)
    batches = Batches(ShardSet(data / "shards"), "bench", SEQUENCES, plan.micro_batch_sequences)
    ends: list[Moment] = []
    short = TrainPlan.from_plain(plan.to_plain() | {"steps": steps})
    TrainingLoop(engine, short, batches, lambda: False, lambda _: ends.append(now())).run(0)
    return ends


def of_trainer(model: Path, data: Path, steps: int) -> Sequence[Moment]:
    import torch
    from transformers import AutoModelForCausalLM

    from tests.bench.train.trainer import trainer_steps

    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    batch = (MICRO_BATCHES["torch"], SEQUENCES // MICRO_BATCHES["torch"], SEQ_LEN)
    return trainer_steps(loaded, data / "tokens.bin", batch, steps, data / "trainer")


def of_mlx_lm(model: Path, data: Path, steps: int, *, everything: bool) -> Sequence[Moment]:
    """Run what `mlx_lm lora --train --fine-tune-type full` runs; with everything: its trainer."""
    from types import SimpleNamespace

    import mlx.core as mx
    from mlx.optimizers import AdamW
    from mlx_lm import load
    from mlx_lm.lora import CONFIG_DEFAULTS, train_model
    from mlx_lm.tuner.callbacks import TrainingCallback
    from mlx_lm.tuner.datasets import CacheDataset, load_dataset
    from mlx_lm.tuner.trainer import TrainingArgs, train

    class Times(TrainingCallback):
        def __init__(self) -> None:
            self.ends: list[Moment] = []

        def on_train_loss_report(self, train_info: dict[str, Any]) -> None:
            self.ends.append(now())

    found: Any = load(str(model))
    loaded, tokenizer = found[:2]
    loaded.set_dtype(mx.float32)
    settings: dict[str, Any] = {
        "data": str(data),
        "train": True,
        "fine_tune_type": "full",
        "num_layers": len(loaded.layers),
        "batch_size": SEQUENCES,
        "iters": steps,
        "steps_per_report": 1,
        "optimizer": "adamw",
        "learning_rate": 2e-5,
        "max_seq_length": SEQ_LEN + 1,
        "adapter_path": str(data / "adapters"),
    }
    asked = SimpleNamespace(**CONFIG_DEFAULTS | settings)
    rows, times = load_dataset(asked, tokenizer)[0], Times()
    if not everything:
        train_model(asked, loaded, rows, [], times)  # no look at held-out text
        return times.ends
    own = TrainingArgs(
        batch_size=SEQUENCES, iters=steps, steps_per_report=1, max_seq_length=SEQ_LEN + 1,
        adapter_file=str(data / "all.safetensors"),
    )  # fmt: skip
    train(loaded, AdamW(learning_rate=2e-5), CacheDataset(rows), None, own, training_callback=times)
    return times.ends


def measured(engine: str, who: str, model: Path, data: Path) -> Moment:
    """Return how long a step takes, in a process of its own."""
    environment = worker_environment("train", {"engine": engine, "threads": os.cpu_count() or 1})
    command = [sys.executable, "-m", __spec__.name, engine, who, str(model), str(data)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{who}: {done.stderr[-2000:]}")
    return Moment(*json.loads(done.stdout.splitlines()[-1]))


def print_tuning(engine: str, rounds: int) -> None:
    """Print what each takes, and ours beside the others'."""
    names = ", ".join(f"{each} {importlib.metadata.version(each)}" for each in LIBRARIES[engine])
    title = f"full tuning of SmolLM2-135M, {engine}"
    try:
        model = model_folder()
    except NotInTheIndexError as error:
        print(f"{title}: not run, the package index doesn't give the model ({error})")
        return
    micro = MICRO_BATCHES[engine]
    rate = tuning_rate(135_000_000)
    print(
        f"{title}: {names}; fp32, AdamW, rate {rate:g}, {SEQUENCES} x {SEQ_LEN} tokens a step in "
        f"{micro} micro batches, {os.cpu_count()} threads, {STEPS} steps after {WARM_STEPS}, "
        f"{min(rounds, MOST_ROUNDS)} rounds by turns",
        flush=True,
    )
    everybody = [OURS, *RIVALS[engine]]
    times: dict[str, list[Moment]] = {who: [] for who in everybody}
    with tempfile.TemporaryDirectory() as data:
        write_text(Path(data), model)
        for number in range(min(rounds, MOST_ROUNDS)):
            # Whoever begins a round is another one each time.
            for who in everybody[number % len(everybody) :] + everybody[: number % len(everybody)]:
                times[who].append(measured(engine, who, model, Path(data)))
    _print_rates(times, RIVALS[engine])


def _print_rates(times: dict[str, list[Moment]], rivals: dict[str, float]) -> None:
    tokens = SEQUENCES * SEQ_LEN
    for who, steps in times.items():
        clock = tokens / statistics.median(step.clock_s for step in steps)
        processor = tokens / statistics.median(step.processor_s for step in steps)
        told = f"  {who}: {clock:,.0f} tokens/s, {processor:,.0f} for each second of processor time"
        if who in rivals:
            pairs = list(zip(steps, times[OURS], strict=True))
            by_clock = statistics.median(a.clock_s / b.clock_s for a, b in pairs)
            by_processor = statistics.median(a.processor_s / b.processor_s for a, b in pairs)
            goal = rivals[who]
            verdict = "reached" if by_processor >= goal else "MISSED"
            told += f"; ours is {by_clock:.2f} x by the clock, {by_processor:.2f} x by processor"
            told += f" time [>= {goal} {verdict}]"
        print(told, flush=True)


def main() -> None:
    engine, who, model, data = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    contestants: dict[str, Callable[[int], Sequence[Moment]]] = {
        OURS: lambda steps: ours(engine, model, data, steps),
        TRAINER: lambda steps: of_trainer(model, data, steps),
        FULL: lambda steps: of_mlx_lm(model, data, steps, everything=False),
        EVERYTHING: lambda steps: of_mlx_lm(model, data, steps, everything=True),
    }
    ends = contestants[who](WARM_STEPS + STEPS)
    step = ends[-1].since(ends[WARM_STEPS - 1], STEPS)
    print(json.dumps([step.clock_s, step.processor_s]), flush=True)
    os._exit(0)  # as a worker does


if __name__ == "__main__":
    main()
