"""Texts in rows, models in columns: the nats of each text under each model and the baselines.

Owns filling that table, one model in memory at a time. Doesn't know who plays which part.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jupiterd.errors import CorruptArtifactError
from jupiterd.workers.evaluate.byte_model import count_bytes
from jupiterd.workers.evaluate.saved_nats import NOTHING_SAVED, SavedNats
from jupiterd.workers.evaluate.scorers import CPU, TORCH, open_scorer
from jupiterd.workers.evaluate.text_scorer import TextScorer

_COUNT_DOCUMENTS = 64

OnProgress = Callable[[int], None]


@dataclass(frozen=True)
class Unigram:
    """What a model's tokens cost without any context: add-one smoothed counts, in nats.

    token_nats: -log probability of each token, shape [vocabulary]
    """

    token_nats: NDArray[np.float64]

    def nats(self, ids: list[int]) -> float:
        """Return -log probability of these tokens, whatever their order."""
        return float(self.token_nats[np.asarray(ids, dtype=np.int64)].sum())


def count_tokens(token_lists: Iterable[list[int]], vocab_size: int) -> Unigram:
    """Return the unigram of these tokens; one never seen counts as seen once."""
    counts = np.ones(vocab_size, dtype=np.float64)
    for ids in token_lists:
        counts += np.bincount(np.asarray(ids, dtype=np.int64), minlength=vocab_size)
    return Unigram(-np.log(counts / counts.sum()))


@dataclass(frozen=True)
class ScoreTable:
    """Each list has an entry for each text; what can't be scored is infinite."""

    nats: Mapping[Path | None, Sequence[float]]
    """Of each model; None is the order-2 byte model."""
    tokens: Sequence[int]
    """Of the first model's tokenizer; 0 where it doesn't load."""
    unigram_nats: Sequence[float]
    """Of the unigram of the first model's tokens."""


@dataclass(frozen=True)
class Means:
    """What texts are scored with."""

    batch_windows: int
    """Windows that pass through a model together."""
    engine: str = TORCH
    device: str = CPU
    saved_nats: SavedNats = NOTHING_SAVED
    """What was scored before."""


def tabulate(
    texts: Sequence[str],
    models: Sequence[Path],
    training: Sequence[str],
    means: Means,
    progress_of: Callable[[int], OnProgress],
) -> ScoreTable:
    """Return the table.

    Args:
        texts: what is scored.
        models: different models; the first is the candidate.
        training: real text that the baselines are counted on.
        means: what they are scored with.
        progress_of: number of a model -> what is told how many texts it has scored.
    """
    byte_model = count_bytes(text.encode() for text in training)
    nats: dict[Path | None, list[float]] = {
        None: [byte_model.nats(text.encode()) for text in texts]
    }
    tokens, unigram_nats = [0] * len(texts), [math.inf] * len(texts)
    for number, path in enumerate(models):
        nats[path] = [math.inf] * len(texts)
        known = means.saved_nats.known(path, texts)
        if number and len(known) == len(texts):
            nats[path] = [known[place] for place in range(len(texts))]
            progress_of(number)(len(texts))
            continue
        if (model := _loaded(path, means)) is None:
            continue
        ids = model.encode(texts)
        nats[path] = _nats(model, texts, ids, known, means, progress_of(number))
        means.saved_nats.keep(path, texts, dict(enumerate(nats[path])))
        if number == 0:
            unigram = _unigram(model, training)
            tokens, unigram_nats = [*map(len, ids)], [unigram.nats(each) for each in ids]
    return ScoreTable(nats, tokens, unigram_nats)


def text_nats(
    path: Path, texts: Sequence[str], means: Means, on_progress: OnProgress
) -> list[float]:
    """Return the nats of each text under one model; what was scored before isn't scored again.

    Raises:
        CorruptArtifactError: the folder holds no model that can be loaded.
    """
    known = means.saved_nats.known(path, texts)
    if len(known) < len(texts):
        model = open_scorer(path, means.engine, means.device)
        on_progress(len(known))
        nats = _nats(model, texts, model.encode(texts), known, means, on_progress)
        means.saved_nats.keep(path, texts, dict(enumerate(nats)))
        return nats
    on_progress(len(texts))
    return [known[place] for place in range(len(texts))]


def _loaded(path: Path, means: Means) -> TextScorer | None:
    """Return the model; None where it can't be loaded, which the gate says of it then."""
    try:
        return open_scorer(path, means.engine, means.device)
    except CorruptArtifactError:
        return None


def _nats(
    model: TextScorer,
    texts: Sequence[str],
    ids: Sequence[list[int]],
    known: Mapping[int, float],
    means: Means,
    on_progress: OnProgress,
) -> list[float]:
    """Return the nats of each text; those that are known aren't computed."""
    new = [place for place in range(len(texts)) if place not in known]
    scored = model.nats(
        [ids[place] for place in new],
        means.batch_windows,
        lambda done: on_progress(len(known) + done),
    )
    found = {
        place: nats if model.is_lossless(texts[place], ids[place]) else math.inf
        for place, nats in zip(new, scored, strict=True)
    } | dict(known)
    return [found[place] for place in range(len(texts))]


def _unigram(model: TextScorer, training: Sequence[str]) -> Unigram:
    starts = range(0, len(training), _COUNT_DOCUMENTS)
    return count_tokens(
        (
            ids
            for start in starts
            for ids in model.encode(training[start : start + _COUNT_DOCUMENTS])
        ),
        model.vocab_size,
    )
