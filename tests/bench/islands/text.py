"""Real text for the contestants: this Python's own library, packed once.

Owns the choice of files and what is held out: whole packages, by name. Doesn't know who trains.
"""

import math
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from blake3 import blake3

from jupiterd.cycle.training.plan import ModelShape
from jupiterd.workers.tokens.shards import ShardSet, ShardWriter
from jupiterd.workers.tokens.tokenizer import encode_batch, train_tokenizer
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine

HELD_OUT_OF = 12
"""One package of so many."""

TOKENIZED_FILES = 150
"""Of which the tokenizer is trained."""

MOST_FILES = 1500
SCORED_TOKENS = 16_384


@dataclass(frozen=True)
class Text:
    """What is trained on, and what is scored."""

    shards: ShardSet
    held_out: list[MicroBatch]
    bytes_per_token: float
    """Of what is held out."""

    @property
    def hash(self) -> str:
        """Return BLAKE3 of all of it, 64 hex digits."""
        hasher = blake3(f"{self.shards.index.hash} {self.bytes_per_token}".encode())
        for batch in self.held_out:
            hasher.update(batch.inputs.tobytes())
        return hasher.hexdigest()

    def bits_per_byte(self, engine: TrainingEngine) -> float:
        """Return the loss on what was held out."""
        tokens = sum(batch.targets.size for batch in self.held_out)
        return engine.nats(self.held_out) / tokens / math.log(2) / self.bytes_per_token


def packed(folder: Path, shape: ModelShape) -> Text:
    """Pack the library for a model; the same files give the same shards."""
    train, held_out = _texts()
    tokenizer = train_tokenizer(train[:TOKENIZED_FILES], shape.vocab_size)
    writer, count = ShardWriter(folder, shape.vocab_size), 0
    for text in train:
        writer.append([*encode_batch(tokenizer, [text])[0], 0])
        count += 1
    writer.finish(
        seq_len=shape.seq_len,
        tokenizer_hash="",
        documents=count,
        size_bytes=sum(len(text.encode()) for text in train),
    )
    ids = [id_ for found in encode_batch(tokenizer, held_out) for id_ in (*found, 0)]
    sequences = min(SCORED_TOKENS, len(ids) - 1) // shape.seq_len
    tokens = np.array(ids[: sequences * shape.seq_len + 1], dtype=np.int64)
    rows = np.stack([tokens[n * shape.seq_len :][: shape.seq_len + 1] for n in range(sequences)])
    batches = [MicroBatch(row[None, :-1], row[None, 1:]) for row in rows]
    size_bytes = sum(len(text.encode()) for text in held_out)
    return Text(ShardSet(folder), batches, size_bytes / len(ids))


def write_files(folder: Path, count: int) -> None:
    """Copy so many of the files into a folder, as people would have them."""
    folder.mkdir()
    for number, (_, text) in enumerate(islice(_files(), count)):
        (folder / f"{number:04}.txt").write_text(text, encoding="utf-8")


def _texts() -> tuple[list[str], list[str]]:
    """Return the files of packages that are trained on, and of those that are held out."""
    train: list[str] = []
    held_out: list[str] = []
    for package, text in _files():
        is_held_out = blake3(package.encode()).digest()[0] % HELD_OUT_OF == 0
        (held_out if is_held_out else train).append(text)
    return train, held_out


def _files() -> Iterator[tuple[str, str]]:
    root = Path(sysconfig.get_path("stdlib"))
    found = (path for path in sorted(root.rglob("*.py")) if "site-packages" not in path.parts)
    mixed = sorted(found, key=lambda path: blake3(str(path.relative_to(root)).encode()).digest())
    for path in mixed[:MOST_FILES]:
        yield path.relative_to(root).parts[0], path.read_text(encoding="utf-8", errors="ignore")
