"""Runs that train an adapter: the small model beside which it is trained, and what is asked for.

Owns the model's folder and the options. Doesn't know daemons, nor what a test wants to see.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupiterd.workers.tokens.tokenizer import save_tokenizer, train_tokenizer
from tests.support.workers.tiny_models import VOCAB, write_model

ADAPTER = ("--lora", "rank=8,alpha=16", "--lr", "0.01")
"""A rate at which an adapter of so small a model learns within a hundred steps."""

SIZES: dict[str, Any] = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "head_dim": 64,
    "initializer_range": 0.1,
}
"""A step takes about as long as one of the size 1m; an output layer of small numbers, which stays
as it is, could say nothing for sure."""


def write_base(folder: Path, letters: Path) -> Path:
    """Write a model of random weights whose tokenizer has learned from letters; return it."""
    base = write_model(folder / "base", "qwen3", **SIZES)
    texts = [path.read_text() for path in sorted(letters.iterdir())]
    save_tokenizer(train_tokenizer(texts, VOCAB), base)
    return base


@dataclass(frozen=True)
class Learner:
    """What a run trains: a model from its first weights, or an adapter beside a model's."""

    model: str = "1m"
    options: Sequence[str] = ()
    """Of `train start`."""
    of_data: Sequence[str] = ()
    """Of `data prepare`."""


def learner(folder: Path, letters: Path, *, lora: bool) -> Learner:
    """Return an adapter beside a model that is written into a folder; else the size 1m."""
    if not lora:
        return Learner()
    base = str(write_base(folder, letters))
    return Learner(base, ADAPTER, ("--tokenizer", base))
