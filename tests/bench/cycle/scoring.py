"""How many documents a second are scored at 25 million parameters, beside a plain loop.

Owns the measurement: both score the same windows of the same model in turn, so that a busy machine
hits them alike. The plain loop takes eight windows at a time with all threads, and whole rows of
logits, 256 at a time. How fast a model is scored doesn't depend on what it has learnt.
"""

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

DOCUMENTS, ROUNDS, WINDOWS, LOGIT_ROWS = 6, 3, 8, 256


class Rate(NamedTuple):
    """Documents per second."""

    of_time: float
    of_cpu_time: float
    """Says the same on a machine that others use, too."""


def print_scoring(_trials: int) -> None:
    """Measure and print."""
    import torch

    from jupiterd.processor_limits import usable_cores
    from jupiterd.workers.evaluate.scorers import open_scorer
    from tests.bench.gpu.random_model import configs, texts, write_model

    torch.set_num_threads(usable_cores())
    with tempfile.TemporaryDirectory() as folder:
        scorer: Any = open_scorer(write_model(Path(folder) / "model", configs()["25m"]))
    documents = scorer.encode(list(texts(DOCUMENTS)))
    contestants: dict[str, Callable[[], list[float]]] = {
        "scoring": lambda: scorer.nats(documents, WINDOWS, print_nothing),
        "a plain loop": lambda: plain_nats(scorer, documents),
    }
    found: dict[str, list[Rate]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, score in contestants.items():
            found[name].append(rate(score))
    tokens = sum(map(len, documents))
    print(
        f"scoring: 25m, {DOCUMENTS} documents, {tokens:,} tokens, {torch.get_num_threads()} threads"
    )
    for name, rates in found.items():
        of_time, of_cpu_time = (median(each) for each in zip(*rates, strict=True))
        print(f"{name}: {of_time:.2f} documents/s, {of_cpu_time:.2f} per second of CPU time")


def print_nothing(_documents: int) -> None:
    """Take no notice of how far it is."""


def rate(score: Callable[[], object]) -> Rate:
    """Return how fast it is."""
    began_s, began_cpu_s = time.perf_counter(), cpu_s()
    score()
    return Rate(DOCUMENTS / (time.perf_counter() - began_s), DOCUMENTS / (cpu_s() - began_cpu_s))


def cpu_s() -> float:
    """Return how much processor time this process has taken, all its threads together."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def plain_nats(scorer: Any, documents: list[list[int]]) -> list[float]:
    """Return the nats of each document as our scorer did before it had blocks and threads."""
    from jupiterd.workers.evaluate.windows import BatchSize, batches_of, windows_of

    streams = scorer.streams(documents)
    context = int(scorer._model.config.max_position_embeddings)
    windows = [w for n, ids in enumerate(documents) for w in windows_of(n, len(ids), context)]
    totals = [0.0] * len(documents)
    for batch in batches_of(windows, BatchSize(WINDOWS, WINDOWS * context)):
        for window, nats in zip(batch, plain_rows(scorer, batch, streams), strict=True):
            totals[window.document] += nats
    return totals


def plain_rows(scorer: Any, batch: list[Any], streams: Any) -> list[float]:
    """Return the nats of each window."""
    import torch

    longest = max(window.stop - window.start for window in batch)
    fed = torch.zeros(len(batch), longest, dtype=torch.long)
    wanted = torch.full((len(batch), longest), -1)
    for row, window in enumerate(batch):
        ids = torch.tensor(streams[window.document].ids[window.start : window.stop + 1])
        fed[row, : len(ids) - 1] = ids[:-1]
        first = window.score_from - window.start
        wanted[row, first : len(ids) - 1] = ids[first + 1 :]
    sums = torch.zeros(len(batch), dtype=torch.float64)
    rows, columns = torch.nonzero(wanted >= 0, as_tuple=True)
    with torch.inference_mode():
        hidden = scorer._model.model(input_ids=fed, use_cache=False).last_hidden_state
        head = scorer._model.get_output_embeddings()
        for start in range(0, len(rows), LOGIT_ROWS):
            row, column = rows[start : start + LOGIT_ROWS], columns[start : start + LOGIT_ROWS]
            nats = torch.nn.functional.cross_entropy(
                head(hidden[row, column]), wanted[row, column], reduction="none"
            )
            sums.index_add_(0, row, nats.double())
    return sums.tolist()
