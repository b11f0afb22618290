"""Documents per second that the evaluation scores under a model of 25 million parameters.

Owns the measurement: on the card, the CPU alongside, and the time of 66 scores on the card.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from jupiterd.workers.evaluate.scorers import CPU, TORCH, open_scorer
from jupiterd.workers.evaluate.text_scorer import TextScorer
from tests.bench.gpu.random_model import configs, texts, write_model
from tests.bench.gpu.row import Row

DOCUMENTS, BATCH_WINDOWS = 32, 8
SCORES = 66
CARD = "cuda:0"


def rows() -> Iterator[Row]:
    """Yield the documents per second, and the seconds of 66 scores."""
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder) / "model", configs()["25m"])
        alongside = open_scorer(model, TORCH, CPU)
        documents = alongside.encode(list(texts(DOCUMENTS)))
        on_card = open_scorer(model, TORCH, CARD)
        rate = DOCUMENTS / seconds(on_card, documents)
        note = f"{sum(map(len, documents)):,} tokens; alongside: the CPU"
        what = f"scoring {DOCUMENTS} documents at 25m"
        yield Row(what, rate, "documents/s", note=note)
        many = (documents * (SCORES // DOCUMENTS + 1))[:SCORES]
        yield Row(f"{SCORES} scores at 25m", seconds(on_card, many), "s", note="loaded before")
        of_cpu = DOCUMENTS / seconds(alongside, documents)
        note += f" with {torch.get_num_threads()} threads"
        yield Row(what, rate, "documents/s", of_cpu, note)


def seconds(scorer: TextScorer, documents: Sequence[list[int]]) -> float:
    """Return how long scoring these takes, once the scorer is warm."""
    scorer.nats(documents[:2], BATCH_WINDOWS, lambda _: None)
    began_s = time.perf_counter()
    scorer.nats(documents, BATCH_WINDOWS, lambda _: None)
    return time.perf_counter() - began_s
