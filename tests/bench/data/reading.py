"""How fast packed tokens are read, and how much of a training step that takes.

python -m tests.bench.data.reading [MILLION_TOKENS]

One core, and its own seconds: other work on the machine plays no part. The tokens lie in the page
cache, as they do from a run's second look at them on.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from jupiterd.cycle.training.plan import ModelShape, derive, parse_model
from jupiterd.workers.tokens.shards import ShardSet, ShardWriter
from jupiterd.workers.train.batches import RankBatches

MILLION_TOKENS = 100
SEQ_LEN = 1024
VOCAB = 32_768
DOCUMENT_TOKENS = 500
BATCH = 64
MICRO_BATCHES = (1, 8, 32)
STEPS = 6
GOAL_PER_S = 200e6
GOAL_SHARE = 0.02
SIZES = {"1m": 4, "25m": 2}
"""Size -> sequences of a step whose share is measured."""

MODELS = Path(__file__).parents[3] / "config" / "models"


def written(folder: Path, tokens: int, seq_len: int, vocab_size: int) -> ShardSet:
    """Write so many random tokens, in documents of a usual length."""
    rng, writer = np.random.default_rng(0), ShardWriter(folder, vocab_size)
    documents = done = 0
    while done < tokens:
        lengths = rng.geometric(1 / DOCUMENT_TOKENS, 2_000)
        ids = rng.integers(0, vocab_size, int(lengths.sum()), dtype=np.int64)
        names = (f"{documents + number:064x}" for number in range(len(lengths)))
        writer.append(ids, list(zip(names, lengths.tolist(), strict=True)))  # pyright: ignore[reportArgumentType]
        documents, done = documents + len(lengths), done + len(ids)
    writer.finish(
        seq_len=seq_len,
        tokenizer_hash="",
        documents=documents,
        size_bytes=2 * done,
    )
    return ShardSet(folder)


def sequential(shards: ShardSet) -> int:
    """Read all sequences in the order of the files; return how many."""
    for start in range(0, shards.sequences, BATCH):
        shards.sequences_at(np.arange(start, min(start + BATCH, shards.sequences)))
    return shards.sequences


def permuted(shards: ShardSet, micro_batch: int, *, apart: bool) -> int:
    """Read one pass as training does; return how many sequences."""
    batches = RankBatches(shards, "bench", BATCH, micro_batch, documents_apart=apart)
    steps = shards.sequences // BATCH
    for step in range(steps):
        for _ in batches.at(step * BATCH):
            pass
    return steps * BATCH


def tokens_per_s(read: Callable[[], int], trials: int) -> float:
    """Return the best of some trials."""
    return max(_rate(read) for _ in range(trials))


def _rate(read: Callable[[], int]) -> float:
    began_s = time.process_time()
    sequences = read()
    return sequences * SEQ_LEN / (time.process_time() - began_s)


def print_rates(folder: Path, million_tokens: int, trials: int) -> None:
    """Print how fast a pass is read, in each way."""
    shards = written(folder, million_tokens * 1_000_000, SEQ_LEN, VOCAB)
    for name, read, has_goal in _ways(shards):
        rate = tokens_per_s(read, trials)
        goal = f"   goal >= {GOAL_PER_S / 1e6:.0f}M" if has_goal else ""
        print(f"{name}: {rate / 1e6:6.0f}M tokens/s{goal}")


def _ways(shards: ShardSet) -> Iterator[tuple[str, Callable[[], int], bool]]:
    yield f"read in file order, {BATCH} sequences at a time", lambda: sequential(shards), True
    for size in MICRO_BATCHES:
        for apart in (False, True):
            told = "documents apart" if apart else "plain"
            name = f"read in training's order, micro batches of {size:2}, {told}"
            yield name, lambda s=size, a=apart: permuted(shards, s, apart=a), not apart


def print_shares(folder: Path, size: str, sequences: int) -> None:
    """Print which part of a training step on torch reading takes, on one thread of a CPU."""
    import torch

    torch.set_num_threads(1)
    shape = parse_model((MODELS / f"{size}.yaml").read_text(encoding="utf-8"))
    shards = written(folder, 2_000_000, shape.seq_len, shape.vocab_size)
    for masks in ("off", "on"):
        reading_s, step_s = _step_s(shape, shards, sequences, masks)
        share, goal = reading_s / (reading_s + step_s), f"goal <= {GOAL_SHARE:.0%}"
        print(
            f"a step of {size}, {sequences} x {shape.seq_len} tokens, document masks {masks:3}: "
            f"reading {reading_s * 1e3:.3f} ms of {(reading_s + step_s) * 1e3:.0f} ms, "
            f"{share:.4%}   {goal}"
        )


def _step_s(shape: ModelShape, shards: ShardSet, sequences: int, masks: str) -> tuple[float, float]:
    """Return how long reading takes in a step, and the rest of it, in seconds of this process."""
    from jupiterd.workers.train.torch.process_group import ProcessGroup
    from jupiterd.workers.train.torch.torch_engine import TorchEngine

    plan = derive(shape, 1)
    options = plan.options.model_copy(update={"document_masks": masks})
    changed = {"batch_sequences": sequences, "micro_batch_sequences": sequences, "options": options}
    engine = TorchEngine(shape, plan.model_copy(update=changed), 0, ProcessGroup(0, 1), "cpu")
    engine.begin(has_same_weights=True)
    apart = engine.options.documents_apart
    batches = RankBatches(shards, "bench", sequences, sequences, documents_apart=apart)
    times: list[tuple[float, float]] = []
    for step in range(STEPS + 1):
        began_s = time.process_time()
        read = list(batches.at(step * sequences))
        read_s = time.process_time()
        engine.step(read, 1e-4)
        times.append((read_s - began_s, time.process_time() - read_s))
    reading, rest = zip(*sorted(times[1:], key=sum), strict=True)
    return reading[STEPS // 2], rest[STEPS // 2]


def print_reading(million_tokens: int = MILLION_TOKENS, trials: int = 3) -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as folder:
        print_rates(Path(folder) / "stream", million_tokens, trials)
        for size, sequences in SIZES.items():
            print_shares(Path(folder) / size, size, sequences)


if __name__ == "__main__":
    print_reading(int(sys.argv[1]) if len(sys.argv) > 1 else MILLION_TOKENS)
