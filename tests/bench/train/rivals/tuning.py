"""Full tuning of a real model beside rivals: tokens/s by the clock and by processor time.

Owns who is measured against whom. Each has a process of its own, which stays; they take a step each
by turns, round after round, so that a busy machine hits them alike. What each took is told at once,
and at the end the medians over the rounds. All have the same text, threads and environment, fp32
and AdamW. The rivals are Hugging Face's Trainer, and
mlx-lm's `lora --fine-tune-type full`, which leaves embeddings and the last norm as they are and so
computes a twelfth less; what its trainer does with all of them is shown beside.
"""

import importlib.metadata
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.tuning import tuned
from jupiterd.daemon.catalog.model_specs import text_of_config
from tests.bench.train.rivals.own_steps import Ended, take_steps
from tests.bench.train.rivals.race import OURS, ROOT, Race, print_rates, taken_by_turns
from tests.bench.train.rivals.turns import Turns
from tests.real.smollm2 import NotInTheIndexError, model_folder

SEQ_LEN, SEQUENCES = 256, 4
RATE = 2e-5
MOST_ROUNDS = 6
TRAINER = "Trainer"
FULL, EVERYTHING = "mlx_lm full", "mlx_lm full, embeddings too"
RIVALS = {"torch": {TRAINER: 1.0}, "mlx": {FULL: 0.95, EVERYTHING: 0.95}}
"""Engine -> who else tunes on it, and how many times as fast as they we are to be."""
MICRO_BATCHES = {"torch": 4, "mlx": 1}
"""Of a step: on torch as `train start` has them; mlx-lm adds up none by itself."""
SETTINGS = {
    TRAINER: "Trainer(optim=adamw_torch_fused, per_device_train_batch_size=1, "
    "gradient_accumulation_steps=4, max_grad_norm=1.0)",
    FULL: "mlx_lm lora --train --fine-tune-type full --num-layers 30 --batch-size 4 "
    "--max-seq-length 257 --optimizer adamw --learning-rate 2e-5",
    EVERYTHING: "mlx_lm.tuner.trainer.train of all parameters, settings as above",
}
"""What a rival is run as."""
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

    from jupiterd.workers.tokens.shards import ShardWriter
    from jupiterd.workers.tokens.tokenizer import load_tokenizer

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


def ours(engine_name: str, model: Path, data: Path, steps: int, ended: Ended) -> None:
    """Take steps as a rank does, but for what it tells its daemon."""
    from jupiterd.workers.train.checkpoints.checkpoint import load_weights
    from tests.bench.train.vocabulary import engine_of

    shape = shape_of(model)
    plan = plan_of(shape, engine_name)
    engine = engine_of(engine_name, shape, plan)
    load_weights(model, engine)
    short = TrainPlan.from_plain(plan.to_plain() | {"steps": steps})
    take_steps(engine, short, data / "shards", ended)


def of_trainer(model: Path, data: Path, steps: int, ended: Ended) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from tests.bench.train.rivals.trainer import run_trainer

    loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    batch = (MICRO_BATCHES["torch"], SEQUENCES // MICRO_BATCHES["torch"], SEQ_LEN)
    run_trainer(loaded, data / "tokens.bin", batch, steps, ended)


def of_mlx_lm(model: Path, data: Path, steps: int, ended: Ended, *, everything: bool) -> None:
    """Run what `mlx_lm lora --train --fine-tune-type full` runs; with everything: its trainer."""
    from mlx.optimizers import AdamW
    from mlx_lm.lora import train_model
    from mlx_lm.tuner.datasets import CacheDataset, load_dataset
    from mlx_lm.tuner.trainer import TrainingArgs, train

    from tests.bench.train.rivals.mlx_lm_command import StepEnds, arguments, load_in_fp32

    loaded, tokenizer = load_in_fp32(model)
    asked = arguments(
        data, loaded, steps, SEQUENCES, SEQ_LEN, learning_rate=RATE, fine_tune_type="full"
    )
    rows, ends = load_dataset(asked, tokenizer)[0], StepEnds(ended)
    if not everything:
        train_model(asked, loaded, rows, [], ends)  # no look at held-out text
        return
    own = TrainingArgs(
        batch_size=SEQUENCES, iters=steps, steps_per_report=1, max_seq_length=SEQ_LEN + 1,
        adapter_file=str(data / "all.safetensors"),
    )  # fmt: skip
    train(loaded, AdamW(learning_rate=RATE), CacheDataset(rows), None, own, training_callback=ends)


def print_tuning(engine: str, rounds: int) -> None:
    """Print what each takes, and ours beside the others'."""
    names = ", ".join(f"{each} {importlib.metadata.version(each)}" for each in LIBRARIES[engine])
    title = f"full tuning of SmolLM2-135M, {engine}"
    try:
        model = model_folder()
    except NotInTheIndexError as error:
        print(f"{title}: not run, the package index doesn't give the model ({error})")
        return
    rounds = min(rounds, MOST_ROUNDS)
    print(
        f"{title}: {names}; fp32, AdamW, {SEQUENCES} x {SEQ_LEN} tokens a step in "
        f"{MICRO_BATCHES[engine]} micro batches, {os.cpu_count()} threads, a step each by turns, "
        f"{rounds} rounds after one that doesn't count",
        flush=True,
    )
    for who in RIVALS[engine]:
        print(f"  {who}: {SETTINGS[who]}", flush=True)
    with tempfile.TemporaryDirectory() as data:
        write_text(Path(data), model)
        race = Race(__spec__.name, engine, RIVALS[engine], SEQUENCES * SEQ_LEN)
        print_rates(race, taken_by_turns(race, model, Path(data), rounds))


def main() -> None:
    engine, who, model, data = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    steps, ended = int(sys.argv[5]), Turns().ended
    contestants: dict[str, Callable[[], None]] = {
        OURS: lambda: ours(engine, model, data, steps, ended),
        TRAINER: lambda: of_trainer(model, data, steps, ended),
        FULL: lambda: of_mlx_lm(model, data, steps, ended, everything=False),
        EVERYTHING: lambda: of_mlx_lm(model, data, steps, ended, everything=True),
    }
    contestants[who]()


if __name__ == "__main__":
    main()
