"""Whether steps that follow the data do as well as fixed ones, in no more time.

`make bench-train ONLY=fits`, or:
python -m tests.bench.train.fits [--mb 0.2 2 20] [--text FOLDER] [--seeds 1 2] [--arms fixed fits]

Owns the data and the table. A model of the size 1m is trained on so much text twice, from the same
first weights and in the same order: by the fixed steps of its size, without looking at development
text, as it was before steps followed the data; and by the plan that a cycle has. Both are scored on
text that neither trained on nor was stopped by. The text is Python's own library, or all Markdown,
reStructuredText and plain text of a folder.
"""

import argparse
import random
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.data.split import DEV, GATE
from jupiterd.cycle.runs.fitted_plan import fitted_plan
from jupiterd.cycle.training.plan import ModelShape, TrainPlan, derive, parse_model
from jupiterd.cycle.training.step_budget import first_budget, passes_over
from jupiterd.locations import config_folder
from jupiterd.protocol.frames import CheckpointWritten
from jupiterd.workers.evaluate.held_out import evaluate
from jupiterd.workers.evaluate.score_table import Means
from jupiterd.workers.tokens.shards import ShardSet, ShardWriter
from jupiterd.workers.tokens.tokenizer import (
    encode_batch,
    entries_of,
    load_tokenizer,
    save_tokenizer,
    tokenizer_hash,
    train_tokenizer,
)
from jupiterd.workers.train.torch import torch_rank
from tests.bench.figure import machine
from tests.support.workers.data_material import real, write
from tests.support.workers.tiny_run import TaskAlone, train_params

SIZE = "1m"
MEGABYTES = (0.2, 2.0, 20.0)
GATE_BYTES = 400_000
DEV_SHARE = 0.1
MOST_DEV_BYTES = 200_000
LONGEST_DOCUMENT = 40_000
SUFFIXES = (".md", ".rst", ".txt")
BATCH_WINDOWS = 8
THREADS = 1
FIXED, FITS = "fixed", "fits"


@dataclass(frozen=True)
class Text:
    """What is trained on, what decides, and what is scored."""

    trained_on: Sequence[str]
    development: Sequence[str]
    judged_by: Sequence[str]


@dataclass(frozen=True)
class Done:
    """One training, as it came out."""

    steps: int
    passes: float
    best_step: int
    wall_s: float
    cpu_s: float
    bits_per_byte: float


def preset() -> ModelShape:
    return parse_model((config_folder() / "models" / f"{SIZE}.yaml").read_text(encoding="utf-8"))


def documents(folder: Path | None, seed: int) -> list[str]:
    """Return every text, in an order of chance; the same one twice counts once."""
    root = folder or Path(sysconfig.get_path("stdlib"))
    suffixes = (".py",) if folder is None else SUFFIXES
    files = [
        file
        for file in sorted(root.rglob("*"))
        if file.suffix in suffixes and file.is_file() and "site-packages" not in file.parts
    ]
    random.Random(seed).shuffle(files)
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in files)
    cut = (text[:LONGEST_DOCUMENT] for text in texts if len(text) > 200)
    return list(dict.fromkeys(cut))


def text_of(megabytes: float, folder: Path | None, seed: int) -> Text:
    """Return so much text to train on, and what is held out beside it."""
    left = iter(documents(folder, seed))
    judged_by = list(_bytes_of(left, GATE_BYTES))
    development = list(_bytes_of(left, min(MOST_DEV_BYTES, DEV_SHARE * megabytes * 1e6)))
    return Text(list(_bytes_of(left, megabytes * 1e6)), development, judged_by)


def _bytes_of(texts: Iterator[str], wanted: float) -> Iterator[str]:
    found = 0
    while found < wanted and (text := next(texts, None)) is not None:
        yield text
        found += len(text.encode())


def pack(text: Text, shape: ModelShape, folder: Path) -> dict[str, str]:
    """Write tokenizer, shards and held-out text, as a cycle does; return them as inputs."""
    tokenizer = folder / "tokenizer"
    save_tokenizer(train_tokenizer(list(text.trained_on), shape.vocab_size), tokenizer)
    ready = load_tokenizer(tokenizer)
    writer = ShardWriter(folder / "shards", entries_of(ready))
    for each in text.trained_on:
        (ids,) = encode_batch(ready, [each])
        writer.append([*ids, 0], [(text_hash(each), len(ids) + 1)])
    writer.finish(
        seq_len=shape.seq_len,
        tokenizer_hash=tokenizer_hash(tokenizer),
        documents=len(text.trained_on),
        size_bytes=sum(len(each.encode()) for each in text.trained_on),
    )
    for name, part, texts in (("dev", DEV, text.development), ("gate", GATE, text.judged_by)):
        write(folder / name, [replace(real(each), split=part) for each in texts])
    return {"shards": str(folder / "shards"), "tokenizer": str(tokenizer)}


def train(
    plan: TrainPlan, shape: ModelShape, inputs: dict[str, str], folder: Path, sequences: int
) -> Done:
    """Train by a plan in this process, and score what comes out."""
    task = TaskAlone("train", train_params(shape, plan), inputs, folder / "out")
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    finished = torch_rank.run(task)
    wall_s, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
    made = [frame for frame in task.frames if isinstance(frame, CheckpointWritten)][-1]
    judged_by = Path(inputs["shards"]).with_name("gate")
    bits, _ = evaluate(task.output_dir / made.path, judged_by, Means(BATCH_WINDOWS))
    steps = int(finished.summary["step"] or 0)
    passes = passes_over(steps, plan.batch_sequences, sequences)
    return Done(steps, passes, int(made.progress.horizon.get("best_step", 0)), wall_s, cpu_s, bits)


def compare(
    megabytes: float, folder: Path | None, seed: int, arms: Sequence[str]
) -> dict[str, Done]:
    """Train by the size's fixed steps and by the fitted plan, on the same data."""
    shape, found = preset(), dict[str, Done]()
    with tempfile.TemporaryDirectory(prefix="jupiter-fits-") as stage:
        inputs = pack(text_of(megabytes, folder, seed), shape, Path(stage))
        sequences = ShardSet(Path(inputs["shards"])).sequences
        fixed = derive(shape, 1, seed=seed)
        budget = first_budget(fixed.steps, fixed.batch_sequences, sequences)
        fits = fitted_plan(fixed, shape.recipe, budget, sequences)
        if FIXED in arms:
            found[FIXED] = train(fixed, shape, inputs, Path(stage) / FIXED, sequences)
        if FITS in arms:
            with_dev = inputs | {"holdout.0": str(Path(stage) / "dev")}
            found[FITS] = train(fits, shape, with_dev, Path(stage) / FITS, sequences)
    return found


def row(name: str, done: Done) -> str:
    best = f"  best at step {done.best_step}" if done.best_step else ""
    took = f"{done.cpu_s:>7.1f} s CPU {done.wall_s:>7.1f} s"
    how = f"{done.steps:>5} steps {done.passes:>5.1f} passes"
    return f"  {name:<12}{how} {done.bits_per_byte:>8.4f} bits/byte {took}{best}"


def print_fits(
    sizes: Sequence[float],
    folder: Path | None = None,
    seeds: Sequence[int] = (1,),
    arms: Sequence[str] = (FIXED, FITS),
) -> None:
    """Train and print; a line of each training, and one that compares."""
    torch.set_num_threads(THREADS)
    for megabytes in sizes:
        print(f"{megabytes:g} MB of text", flush=True)
        found: list[dict[str, Done]] = []
        for seed in seeds:
            found.append(compare(megabytes, folder, seed, arms))
            for name, done in found[-1].items():
                print(row(name, done), flush=True)
        if all(len(each) == len((FIXED, FITS)) for each in found):
            saved = [each[FIXED].bits_per_byte - each[FITS].bits_per_byte for each in found]
            took = [sum(each[arm].cpu_s for each in found) for arm in (FITS, FIXED)]
            print(
                f"  -> {statistics.mean(saved):+.4f} bits/byte saved, "
                f"{took[0] / took[1]:.2f} x the time",
                flush=True,
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=float, nargs="*", default=list(MEGABYTES))
    parser.add_argument("--text", type=Path, default=None, help="a folder; else Python's library")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--arms", nargs="*", choices=(FIXED, FITS), default=[FIXED, FITS])
    chosen = parser.parse_args()
    print(machine())
    print_fits(chosen.mb, chosen.text, chosen.seeds, chosen.arms)


if __name__ == "__main__":
    main()
