"""What the training tests share: a tiny shape, random shards, and a task without a daemon."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jupiterd.cycle.data.lineage import text_hash
from jupiterd.cycle.training.plan import ModelShape, Recipe, TrainPlan, derive
from jupiterd.protocol.frames import Frame
from jupiterd.workers.link import Task
from jupiterd.workers.tokens.shards import ShardWriter
from jupiterd.workers.tokens.tokenizer import save_tokenizer, tokenizer_hash, train_tokenizer
from tests.support.workers.open_store import ask

# Tests share a machine, and more threads than free cores make tiny work crawl.
torch.set_num_threads(1)

VOCAB = 300
SEQ_LEN = 16


def tiny_shape(**changes: Any) -> ModelShape:
    recipe = Recipe(
        first_steps=6,
        later_steps=4,
        batch_sequences=6,
        micro_batch_sequences=2,
        learning_rate=1e-2,
        later_learning_rate=5e-3,
        checkpoint_every_steps=3,
    )
    fields: dict[str, Any] = {
        "version": 1,
        "size": "tiny",
        "vocab_size": VOCAB,
        "seq_len": SEQ_LEN,
        "hidden": 32,
        "layers": 2,
        "ff": 48,
        "heads": 2,
        "kv_heads": 1,
        "head_dim": 16,
        "rope_theta": 5e4,
        "recipe": recipe,
    }
    return ModelShape(**(fields | changes))


def make_inputs(folder: Path, vocab: int = VOCAB, seq_len: int = SEQ_LEN) -> dict[str, str]:
    """Write a tokenizer and 20 sequences of random tokens; return them as a task's inputs.

    Their documents have seven tokens, whose ids lie all over a vocabulary that is larger.
    """
    tokenizer = folder / "tokenizer"
    save_tokenizer(train_tokenizer(["def add(a, b):\n    return a + b\n"] * 3, VOCAB), tokenizer)
    writer = ShardWriter(folder / "shards", vocab, max_file_tokens=100)
    # A skewed choice of tokens, so that there is something to learn.
    tokens = np.random.default_rng(0).zipf(1.5, 20 * seq_len + 1) % 250
    tokens *= vocab // VOCAB
    documents = [text_hash(str(number)) for number in range(-(-len(tokens) // 7))]
    writer.append(tokens.tolist(), [(document, 7) for document in documents])
    writer.finish(
        seq_len=seq_len,
        tokenizer_hash=tokenizer_hash(tokenizer),
        documents=1,
        size_bytes=1,
    )
    return {"shards": str(folder / "shards"), "tokenizer": str(tokenizer)}


def train_params(
    shape: ModelShape, plan: TrainPlan | None = None, **changes: Any
) -> dict[str, Any]:
    plan = plan or derive(shape, 1)
    params = {"shape": shape.to_plain(), "plan": plan.to_plain(), "round": 1}
    return params | changes


class TaskAlone(Task):
    """A task that no daemon gave: it runs in this process and keeps what it would send."""

    def __init__(
        self, name: str, params: Mapping[str, Any], inputs: Mapping[str, str], output_dir: Path
    ) -> None:
        output_dir.mkdir(parents=True, exist_ok=True)
        self.name, self.params, self.output_dir = name, params, output_dir
        self.scratch_dir = output_dir.parent / f"{output_dir.name}-scratch" / "own"
        self.inputs = {name: Path(path) for name, path in inputs.items()}
        self.frames: list[Frame] = []
        self._stop = threading.Event()
        self._last_progress_s = float("-inf")

    def send(self, frame: Frame) -> None:
        self.frames.append(frame)

    def stop(self) -> None:
        self._stop.set()

    def ask_store(
        self, verb: str, keys: Sequence[str], values: Sequence[bytes], within_s: float
    ) -> bytes:
        return ask(self.params["store"], verb, keys, values)
