"""The task `evaluate`: score held-out text under the candidate, the incumbent and two baselines.

Owns putting the four side by side over the same bytes. Doesn't decide anything (`judge` does).

inputs: model, incumbent (optional; absent: the byte model takes its place), kept, holdout.N
params: piece, pieces, min_document_bytes, max_document_bytes, max_cluster_documents, batch, purged,
parts
outputs: scores
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupiterd.cycle.gate import DocumentScore
from jupiterd.cycle.purge import Purge
from jupiterd.cycle.split import GATE, held_out_part
from jupiterd.errors import EmptySourceError
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.progress import Progress, silent
from jupiterd.workers.data.sample_file import read_all
from jupiterd.workers.evaluate.byte_model import count_bytes
from jupiterd.workers.evaluate.documents import Limits, choose_documents
from jupiterd.workers.evaluate.language_model import LanguageModel
from jupiterd.workers.evaluate.score_file import write_scores
from jupiterd.workers.evaluate.unigram import Unigram, count_tokens
from jupiterd.workers.link import Task

DEFAULT_BATCH_WINDOWS = 8
"""More windows at a time are no faster on a CPU: they leave the cache."""

_COUNT_DOCUMENTS = 64


@dataclass(frozen=True)
class ScoreInputs:
    """The folders that a piece of evaluation reads."""

    model: Path
    incumbent: Path | None
    kept: Sequence[Path]
    holdout: Sequence[Path]
    purge: Purge = field(default_factory=Purge)
    parts: frozenset[str] = frozenset({GATE})
    """The parts of the holdout whose text is scored."""


@dataclass(frozen=True)
class ScoreParams:
    """Which documents this piece scores, and how many windows at a time."""

    piece: int
    pieces: int
    limits: Limits
    batch_windows: int = DEFAULT_BATCH_WINDOWS


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    limits = Limits(
        int(task.params["min_document_bytes"]),
        int(task.params["max_document_bytes"]),
        int(task.params["max_cluster_documents"]),
    )
    params = ScoreParams(
        int(task.params["piece"]),
        int(task.params["pieces"]),
        limits,
        int(task.params.get("batch", DEFAULT_BATCH_WINDOWS)),
    )
    inputs = ScoreInputs(
        task.inputs["model"],
        task.inputs.get("incumbent"),
        task.inputs_named("kept"),
        task.inputs_named("holdout"),
        Purge(map(str, task.params.get("purged", ()))),
        frozenset(map(str, task.params.get("parts", (GATE,)))),
    )
    scores = score(inputs, params, task.progress)
    write_scores(task.output_dir / "scores", scores)
    counts: dict[str, float] = {
        "documents": len(scores),
        "scores": len(scores) * (2 if inputs.incumbent else 1),
        "bytes": sum(row.bytes for row in scores),
        "clusters": len({row.cluster for row in scores}),
    }
    return TaskFinished({"scores": "scores"}, counts)


def score(
    inputs: ScoreInputs, params: ScoreParams, progress: Progress = silent
) -> list[DocumentScore]:
    """Return the scores of this piece's documents; every model's nats are over the same bytes.

    Raises:
        EmptySourceError: this piece has no document, or there is no training text to count.
    """
    held_out = inputs.purge.left(read_all(inputs.holdout))
    shown = (sample for sample in held_out if held_out_part(sample.split) in inputs.parts)
    documents = choose_documents(shown, params.limits, params.piece, params.pieces)
    if not documents:
        raise EmptySourceError(f"piece {params.piece} of the evaluation has no held-out document")
    kept = inputs.purge.left(read_all(inputs.kept))
    training = [sample.text for sample in kept if sample.kind == "real"]
    if not training:
        raise EmptySourceError("there is no real training text to count the baselines on")
    texts = [document.text for document in documents]
    byte_model = count_bytes(text.encode() for text in training)
    byte_nats = [byte_model.nats(text.encode()) for text in texts]
    steps = _Steps(progress, len(documents), 2 if inputs.incumbent else 1)
    candidate = LanguageModel(inputs.model)
    ids = candidate.encode(texts)
    unigram = _unigram(candidate, training)
    candidate_nats = _nats(candidate, texts, params, steps.of(0))
    incumbent_nats = byte_nats
    if inputs.incumbent:
        incumbent_nats = _nats(LanguageModel(inputs.incumbent), texts, params, steps.of(1))
    columns = zip(documents, ids, candidate_nats, incumbent_nats, byte_nats, strict=True)
    return [
        DocumentScore(
            id=document.id,
            cluster=document.cluster,
            stratum=document.stratum,
            bytes=document.size_bytes,
            tokens=len(tokens),
            candidate_nats=candidate_value,
            incumbent_nats=incumbent_value,
            byte_nats=byte_value,
            unigram_nats=unigram.nats(tokens),
        )
        for document, tokens, candidate_value, incumbent_value, byte_value in columns
    ]


@dataclass(frozen=True)
class _Steps:
    """Makes one progress out of that of several models, which each pass over all documents."""

    progress: Progress
    documents: int
    models: int

    def of(self, model: int) -> Callable[[int], None]:
        return lambda done: self.progress(
            model * self.documents + done, self.models * self.documents, "scores"
        )


def _nats(
    model: LanguageModel,
    texts: Sequence[str],
    params: ScoreParams,
    on_progress: Callable[[int], None],
) -> list[float]:
    ids = model.encode(texts)
    nats = model.nats(ids, params.batch_windows, on_progress)
    return [
        value if model.is_lossless(text, tokens) else math.inf
        for value, text, tokens in zip(nats, texts, ids, strict=True)
    ]


def _unigram(model: LanguageModel, training: Sequence[str]) -> Unigram:
    starts = range(0, len(training), _COUNT_DOCUMENTS)
    return count_tokens(
        (
            ids
            for start in starts
            for ids in model.encode(training[start : start + _COUNT_DOCUMENTS])
        ),
        model.vocab_size,
    )
