"""Documents per second that the evaluation scores under a model of 25 million parameters.

Owns the measurement. The evaluation scores on the CPU today, wherever it runs.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch

from jupiterd.workers.evaluate.scorers import open_scorer
from tests.bench.gpu.random_model import configs, texts, write_model
from tests.bench.gpu.row import Row

DOCUMENTS, BATCH_WINDOWS = 32, 8


def rows() -> Iterator[Row]:
    """Yield the documents per second."""
    with tempfile.TemporaryDirectory() as folder:
        scorer = open_scorer(write_model(Path(folder) / "model", configs()["25m"]))
        documents = scorer.encode(list(texts(DOCUMENTS)))
        scorer.nats(documents[:2], BATCH_WINDOWS, lambda _: None)
        began_s = time.perf_counter()
        scorer.nats(documents, BATCH_WINDOWS, lambda _: None)
        rate = len(documents) / (time.perf_counter() - began_s)
    tokens = sum(map(len, documents))
    note = f"on the CPU, {torch.get_num_threads()} threads, {tokens:,} tokens"
    yield Row(f"scoring {DOCUMENTS} documents at 25m", rate, "documents/s", note=note)
