"""The task `evaluate_held_out`: how well a model predicts text that it wasn't trained on.

Owns that one number, and what of a conversation it is of: what the loss counts in training, by the
model's chat template. Doesn't compare models (`score` and `judge` do).

inputs: model, holdout (sample folder) · params: batch, engine, device, loss_on (all optional)
outputs: none
summary: val_bpb (bits per byte, over all held-out text together)
"""

import math
from collections.abc import Iterable
from pathlib import Path

from jupiterd.cycle.data.instruction_rows import conversation_in
from jupiterd.cycle.data.lineage import Sample
from jupiterd.errors import EmptySourceError
from jupiterd.protocol.frames import TaskFinished
from jupiterd.workers.evaluate.score import DEFAULT_BATCH_WINDOWS
from jupiterd.workers.evaluate.score_table import Means
from jupiterd.workers.evaluate.scorers import CPU, TORCH, open_scorer
from jupiterd.workers.evaluate.text_scorer import Stream
from jupiterd.workers.link import Task
from jupiterd.workers.memory_room import halved
from jupiterd.workers.progress import Progress, silent
from jupiterd.workers.samples.sample_file import read_samples
from jupiterd.workers.tokens.chat_encoding import ChatEncoder


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    batch = halved(int(task.params.get("batch", DEFAULT_BATCH_WINDOWS)), task.params, "text")
    engine, device = task.params.get("engine", TORCH), task.params.get("device", CPU)
    bits_per_byte, counts = evaluate(
        task.inputs["model"],
        task.inputs["holdout"],
        Means(batch, str(engine), str(device)),
        task.progress,
        str(task.params.get("loss_on", "")),
    )
    return TaskFinished({}, counts, {"val_bpb": bits_per_byte})


def evaluate(
    model: Path,
    holdout: Path,
    means: Means,
    progress: Progress = silent,
    loss_on: str = "",
) -> tuple[float, dict[str, float]]:
    """Return the bits per byte of what counts, and the counts.

    Raises:
        EmptySourceError: nothing was held out.
    """
    samples = list(read_samples(holdout))
    if not any(sample.text for sample in samples):
        raise EmptySourceError("no text was held out for validation")
    scorer = open_scorer(model, means.engine, means.device)
    if any(sample.messages for sample in samples):
        encoder = ChatEncoder(model, answers_alone=loss_on != "all")
        streams = _conversations(samples, encoder)
        size_bytes = sum(map(scorer.counted_bytes, streams))
    else:
        texts = [sample.text for sample in samples]
        streams = scorer.streams(scorer.encode(texts))
        size_bytes = sum(len(text.encode()) for text in texts)
    nats = scorer.stream_nats(
        streams, means.batch_windows, lambda done: progress(done, len(streams), "documents")
    )
    counts: dict[str, float] = {"documents": len(streams), "bytes": size_bytes}
    return sum(nats) / math.log(2) / max(1, size_bytes), counts


def _conversations(samples: Iterable[Sample], encoder: ChatEncoder) -> list[Stream]:
    found = (said for sample in samples if (said := conversation_in(sample)) is not None)
    return [Stream(*encoder.encode(said)) for said in found]
