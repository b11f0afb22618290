"""The task `pack`: cap the synthetic share, turn text into tokens, write them as shards.

Owns what goes into a round's stream of tokens and in which order. The tokenizer is trained on kept
real text alone. Doesn't know who trains on it. The kept text of a round is held in memory. Where
the tokenizer has a chat template, generated questions and answers are packed by it, if so asked.

inputs: kept (sample folder), tokenizer (optional; a model's folder will do)
params: vocab_size, seq_len, synthetic_share, seed, purged, share_reason, loss_on (of conversations)
outputs: tokenizer (the one given, or a new one), shards
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupiterd.cycle.base.purge_counts import LEFT_OUT_COUNT, PURGED_COUNT
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.mixing import Offered, shuffle_key, take_synthetic
from jupiterd.cycle.data.purge import Purge
from jupiterd.cycle.templates.pairs import pairs_among
from jupiterd.cycle.training.architectures import MAX_VOCAB
from jupiterd.errors import EmptySourceError, InvalidSettingError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.data.instruction.mixed_stream import MixedStream
from jupiterd.workers.data.pack.contents import contents, write_contents
from jupiterd.workers.link import Task
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import read_all
from jupiterd.workers.tokens.chat_encoding import ChatEncoder
from jupiterd.workers.tokens.marks import document_marks
from jupiterd.workers.tokens.shards import ShardIndex, ShardWriter
from jupiterd.workers.tokens.tokenizer import (
    copy_tokenizer,
    encode_batch,
    entries_of,
    load_tokenizer,
    save_tokenizer,
    tokenizer_hash,
    train_tokenizer,
)

_BATCH_DOCUMENTS = 64


@dataclass(frozen=True)
class PackParams:
    """What decides the shards, beside the text."""

    vocab_size: int
    """Entries of the tokenizer, if one is trained."""
    seq_len: int
    synthetic_share: float
    """Greatest share of the bytes that may be synthetic."""
    seed: int
    """Key of the documents' order and of the choice among synthetic ones."""
    purged: tuple[str, ...] = ()
    """Sources of which nothing may be packed, nor anything made from it."""
    loss_on: str = ""
    """What the loss counts of conversations, `answers` or `all`; empty: all samples are text."""


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    params = PackParams(
        vocab_size=int(task.params["vocab_size"]),
        seq_len=int(task.params["seq_len"]),
        synthetic_share=float(task.params["synthetic_share"]),
        seed=int(task.params["seed"]),
        purged=tuple(map(str, task.params.get("purged", ()))),
        loss_on=str(task.params.get("loss_on", "")),
    )
    counts, reason = pack(
        task.inputs_named("kept"),
        task.inputs.get("tokenizer"),
        task.output_dir,
        params,
        task.progress,
    )
    reasons = {"mix_reason": reason, "share_reason": str(task.params.get("share_reason", ""))}
    return TaskFinished({"tokenizer": "tokenizer", "shards": "shards"}, counts, reasons)


def pack(
    retained: Sequence[Path],
    tokenizer_dir: Path | None,
    output_dir: Path,
    params: PackParams,
    progress: Progress = silent,
) -> tuple[dict[str, float], str]:
    """Write `tokenizer` and `shards` below `output_dir`; return counts and the reason of the mix.

    Raises:
        EmptySourceError: the text isn't enough for one sequence.
        InvalidSettingError: the vocabulary is larger than any model's.
    """
    samples = sorted(
        read_all(retained), key=lambda sample: shuffle_key(sample.id, str(params.seed))
    )
    purge = Purge(params.purged)
    purge.learn(samples)
    left_out = Counter(source for sample in samples if (source := purge.hit(sample)))
    chosen, reason = _mixed(list(purge.left(samples)), params)
    _provide_tokenizer(tokenizer_dir, chosen, output_dir / "tokenizer", params)
    has_conversations = any(sample.messages for sample in chosen)
    encoder = _encoder(output_dir / "tokenizer", params.loss_on if has_conversations else "")
    # A model that is talked to is asked for a text in other words.
    pairs = _pairs(chosen) if encoder is None else {}
    texts = [pairs.get(sample.id, sample.text) for sample in chosen]
    stream = _Stream(output_dir, params, encoder, progress)
    index = stream.written(chosen, texts)
    if not index.sequences:
        raise EmptySourceError(f"{index.tokens} tokens are too few for a sequence")
    counted = contents(chosen, purge, left_out)
    write_contents(output_dir / "shards", counted)
    counts: dict[str, float] = {
        "tokens": index.tokens,
        "sequences": index.sequences,
        "documents": index.documents,
        "bytes": index.bytes,
        "synthetic_documents": sum(sample.kind == "synthetic" for sample in chosen),
        "synthetic_bytes": counted["synthetic_bytes"],
        "paired_documents": len(pairs),
        **stream.counts(index),
        "tokens_per_byte": index.tokens / index.bytes,
        **_proof(counted["purged"]),
    }
    return counts, reason


def _proof(purged: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """Return what the ledger is told of each purged source."""
    in_shards = {f"{PURGED_COUNT}{name}": found["in_shards"] for name, found in purged.items()}
    left_out = {f"{LEFT_OUT_COUNT}{name}": found["left_out"] for name, found in purged.items()}
    return {**in_shards, **left_out}


def _mixed(samples: Sequence[Sample], params: PackParams) -> tuple[list[Sample], str]:
    sizes = {sample.id: len(sample.text.encode()) for sample in samples}
    real_bytes = sum(sizes[sample.id] for sample in samples if sample.kind == "real")
    synthetic = [
        Offered(sample.id, sizes[sample.id], sample.parents[0])
        for sample in samples
        if sample.kind == "synthetic"
    ]
    taken, reason = take_synthetic(
        real_bytes, synthetic, params.synthetic_share, f"mix {params.seed}"
    )
    return [sample for sample in samples if sample.kind == "real" or sample.id in taken], reason


def _provide_tokenizer(
    given: Path | None, samples: Sequence[Sample], folder: Path, params: PackParams
) -> None:
    if given is not None:
        copy_tokenizer(given, folder)
        return
    real = (sample.text for sample in samples if sample.kind == "real")
    save_tokenizer(train_tokenizer(real, params.vocab_size), folder)


def _pairs(samples: Sequence[Sample]) -> Mapping[str, str]:
    """Return the texts of those that stand behind the passage that they were made of."""
    total_bytes = sum(len(sample.text.encode()) for sample in samples)
    return pairs_among(samples, total_bytes)


def _encoder(tokenizer: Path, loss_on: str) -> ChatEncoder | None:
    """Return what makes tokens of conversations; None: all samples are packed as text."""
    if not loss_on:
        return None
    found = ChatEncoder(tokenizer, answers_alone=loss_on == "answers")
    return found if found.has_template else None


class _Stream:
    """Writes samples as tokens."""

    def __init__(
        self, output_dir: Path, params: PackParams, encoder: ChatEncoder | None, progress: Progress
    ) -> None:
        # Read back even when just trained, so that both ways tokenize alike.
        self._folder = output_dir / "tokenizer"
        self._tokenizer = load_tokenizer(self._folder)
        vocab_size = entries_of(self._tokenizer)
        if vocab_size > MAX_VOCAB:
            raise InvalidSettingError(
                f"a vocabulary of {vocab_size:,} is larger than {MAX_VOCAB:,}"
            )
        self._marks = document_marks(self._folder, self._tokenizer)
        self._writer = ShardWriter(output_dir / "shards", vocab_size)
        self._seq_len, self._loss_on = params.seq_len, params.loss_on
        self._progress = progress
        self._mixed = encoder and MixedStream(self._writer, self._tokenizer, self._marks, encoder)

    def written(self, samples: Sequence[Sample], texts: Sequence[str]) -> ShardIndex:
        """Write all of them; return the index."""
        if self._mixed is None:
            self._append_texts(samples, texts)
        else:
            self._mixed.append_all(samples, self._progress)
        return self._writer.finish(
            seq_len=self._seq_len,
            tokenizer_hash=tokenizer_hash(self._folder),
            documents=len(samples),
            size_bytes=sum(len(text.encode()) for text in texts),
            loss_on=self._loss_on,
        )

    def counts(self, index: ShardIndex) -> dict[str, float]:
        """Return what there is of conversations; nothing where all samples are text."""
        if self._mixed is None:
            return {}
        return {
            "conversations": self._mixed.conversations,
            "counted_tokens": index.counted_tokens,
        }

    def _append_texts(self, samples: Sequence[Sample], texts: Sequence[str]) -> None:
        for start in range(0, len(samples), _BATCH_DOCUMENTS):
            part = slice(start, start + _BATCH_DOCUMENTS)
            encoded = encode_batch(self._tokenizer, list(texts[part]))
            whole = [self._marks.around(ids) for ids in encoded]
            pairs = zip(samples[part], whole, strict=True)
            lengths = [(sample.id, len(ids)) for sample, ids in pairs]
            self._writer.append([id_ for ids in whole for id_ in ids], lengths)
            done = min(start + _BATCH_DOCUMENTS, len(samples))
            self._progress(done, len(samples), "documents")
