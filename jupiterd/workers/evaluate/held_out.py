"""The task `evaluate_held_out`: how well a model predicts text that it wasn't trained on.

Owns that one number. Doesn't compare models (`score` and `judge` do).

inputs: model, holdout (sample folder) · params: batch, engine (optional) · outputs: none
summary: val_bpb (bits per byte, over all held-out text together)
"""

import math
from pathlib import Path

from jupiterd.errors import EmptySourceError
from jupiterd.frames import TaskFinished
from jupiterd.workers.data.progress import Progress, silent
from jupiterd.workers.data.sample_file import read_samples
from jupiterd.workers.evaluate.score import DEFAULT_BATCH_WINDOWS
from jupiterd.workers.evaluate.scorers import TORCH, open_scorer
from jupiterd.workers.link import Task


def run(task: Task) -> TaskFinished:
    """Do the task that a daemon gave."""
    batch = int(task.params.get("batch", DEFAULT_BATCH_WINDOWS))
    bits_per_byte, counts = evaluate(
        task.inputs["model"],
        task.inputs["holdout"],
        batch,
        task.progress,
        str(task.params.get("engine", TORCH)),
    )
    return TaskFinished({}, counts, {"val_bpb": bits_per_byte})


def evaluate(
    model: Path,
    holdout: Path,
    batch_windows: int,
    progress: Progress = silent,
    engine: str = TORCH,
) -> tuple[float, dict[str, float]]:
    """Return the bits per byte, and the counts.

    Raises:
        EmptySourceError: nothing was held out.
    """
    texts = [sample.text for sample in read_samples(holdout)]
    size_bytes = sum(len(text.encode()) for text in texts)
    if not size_bytes:
        raise EmptySourceError("no text was held out for validation")
    scorer = open_scorer(model, engine)
    nats = scorer.nats(
        scorer.encode(texts), batch_windows, lambda done: progress(done, len(texts), "documents")
    )
    counts: dict[str, float] = {"documents": len(texts), "bytes": size_bytes}
    return sum(nats) / math.log(2) / size_bytes, counts
