"""Which micro batch a rank takes, tried on its device before the first step where that is worth it.

Owns when it is tried, and the passes. Doesn't know what is tried next
(`cycle.micro_batches.batch_search`), or how a pass is computed. Whatever it takes, a step trains on
the same sequences in the same order.

params: micro_batch_sequences (the default here, fewer where memory ran out or others use it),
micro_batch_file (absent: nothing is kept)
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

import numpy as np

from jupiterd import __version__
from jupiterd.cycle.micro_batches.batch_search import LIMIT_S, BatchSearch
from jupiterd.cycle.micro_batches.device_default import (
    METAL_MOST_S,
    guessed_flops_per_s,
    most_micro_batch,
    sequence_s,
)
from jupiterd.cycle.micro_batches.known_choices import Choice, key_of
from jupiterd.cycle.training.memory import CPU, MLX
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.protocol.preparing_stage import TRYING
from jupiterd.workers.link import Task
from jupiterd.workers.memory_room import give_back, is_out_of_memory
from jupiterd.workers.train.dropout_mask import token_keys
from jupiterd.workers.train.kept_choices import KeptChoices
from jupiterd.workers.training_engine import MicroBatch, TrainingEngine

FILE = "micro_batch_file"

SHARE: Final = 0.02
LEAST_S: Final = 5.0
"""A search takes no more than such a share of the training, or so long."""

_DOCUMENT_TOKENS = 256
"""Where documents are kept apart, each sequence tried has some of this length."""


@dataclass(frozen=True)
class ProbeSetup:
    """What a rank trains, as far as its micro batch is concerned."""

    shape: ModelShape
    plan: TrainPlan
    steps: int
    """That are to be taken yet."""
    may_search: bool
    """Nobody waits for this rank who has begun already."""


class MicroBatchProbe:
    """One rank's choice."""

    def __init__(
        self,
        task: Task,
        engine: TrainingEngine,
        setup: ProbeSetup,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task, self._engine, self._setup, self._clock = task, engine, setup, clock
        planned = setup.plan.micro_batch_sequences
        self._default = int(task.params.get("micro_batch_sequences", planned))
        self._device = engine.abilities
        self._flops_per_s = guessed_flops_per_s(self._device, engine.peak_flops_per_s)
        self._choices = KeptChoices(task.params.get(FILE), self._key)

    def chosen(self) -> int:
        """Return how many sequences this rank holds at a time, and prepare the engine for it."""
        if not self._may_differ or (most := self._most()) <= 1:
            return self._default
        known = self._choices.found(most)
        if known is not None and known.is_made:
            is_measured = known.tokens_per_s > 0
            why = "as measured before" if is_measured else "earlier searches ended their workers"
            return self._taken(known.micro_batch, why)
        if not self._setup.may_search:
            return self._default
        return self._searched(most, 0 if known is None else known.begun)

    @property
    def _may_differ(self) -> bool:
        """Say whether another size may be faster: on a CPU next to nothing hangs on it."""
        is_free = self._setup.plan.options.micro_batch == "auto"
        return is_free and self._device.kind != CPU and self._setup.steps > 0

    def _most(self) -> int:
        plan = self._setup.plan
        if self._default < min(plan.micro_batch_sequences, plan.batch_sequences):
            return self._default  # memory ran out, or others use some of it
        return most_micro_batch(self._setup.shape, plan, self._device, self._flops_per_s)

    def _searched(self, most: int, begun: int) -> int:
        """Return what a search finds. Before it, the file is told: it may be this worker's end."""
        self._choices.keep(Choice(self._default, most, 0.0, begun + 1))
        search, limit_s = self._search(most)
        self._try_passes(search, limit_s, most)
        if self._task.stop_requested:
            self._choices.keep(Choice(self._default, most, 0.0, begun))
            return self._default
        found = search.best
        if (rate := search.rate_of(found)) is None:  # there was no time for a single pass
            self._choices.keep(Choice(self._default, most, 0.0, begun))
            return self._taken(found, "nothing was measured")
        rate *= self._setup.shape.seq_len
        self._choices.keep(Choice(found, most, rate))
        why = f"measured, {rate:,.0f} tokens/s beside {self._default} by default"
        return self._taken(found, why)

    def _search(self, most: int) -> tuple[BatchSearch, float]:
        plan = self._setup.plan
        each_s = sequence_s(self._setup.shape, self._flops_per_s, plan.options.adapter)
        training_s = self._setup.steps * plan.batch_sequences * each_s
        limit_s = min(LIMIT_S, max(LEAST_S, SHARE * training_s))
        begin, longest_s = min(self._default, most), math.inf
        if self._device.engine == MLX:
            longest_s = METAL_MOST_S
        sequences = plan.batch_sequences

        def may_be_tried(size: int) -> bool:
            return size <= most

        return BatchSearch(sequences, begin, may_be_tried, each_s, limit_s, longest_s), limit_s

    def _try_passes(self, search: BatchSearch, limit_s: float, most: int) -> None:
        """Compute passes as the search wants them, until it or the rank is to end."""
        began_s, now = self._clock(), 0
        self._warm_up()
        while not self._task.stop_requested:
            size = search.next(self._clock() - began_s)
            if size is None:
                break
            if size != now:
                self._engine.end_passes()
                self._engine.take_micro_batch(now := size)
                self._task.prepares(TRYING, f"{size} of {most}", limit_s)
            self._try_pass(search, size)
        self._engine.end_passes()
        give_back()

    def _warm_up(self) -> None:
        """Let the framework load what it does once, so that no size is held responsible for it."""
        if not self._task.stop_requested:
            self._pass_s(1)
            self._engine.end_passes()

    def _try_pass(self, search: BatchSearch, size: int) -> None:
        if (seconds := self._pass_s(size)) is not None:
            search.took(size, seconds)
            return
        search.ran_out(size)
        self._engine.end_passes()
        give_back()

    def _pass_s(self, size: int) -> float | None:
        """Return how long a pass took; None: it can't be done, and the error's frames are gone.

        Sizes beyond the default may meet limits of kernels, too. What fails at the default would
        fail the training.
        """
        try:
            return self._engine.try_pass(self._random_batch(size))
        except Exception as error:
            if size <= self._default and not is_out_of_memory(error):
                raise
            return None

    def _random_batch(self, size: int) -> MicroBatch:
        """Return random tokens: what is learned of them is thrown away."""
        shape, options = self._setup.shape, self._engine.options
        draw = np.random.default_rng(size)
        tokens = draw.integers(0, shape.vocab_size, (size, shape.seq_len + 1), dtype=np.int64)
        documents = None
        if options.documents_apart:
            of_one = np.arange(shape.seq_len, dtype=np.int64) // _DOCUMENT_TOKENS
            documents = np.tile(of_one, (size, 1))
        adapter, keys = self._setup.plan.options.adapter, None
        if adapter is not None and adapter.dropout:
            keys = token_keys("", np.arange(size), shape.seq_len)
        inputs, targets = tokens[:, :-1].copy(), tokens[:, 1:].copy()
        return MicroBatch(inputs, targets, documents, token_keys=keys)

    def _taken(self, size: int, why: str) -> int:
        self._engine.take_micro_batch(size)
        print(f"Micro batches of {size}: {why}", file=sys.stderr, flush=True)  # noqa: T201 - the log
        return size

    @property
    def _key(self) -> str:
        engine, gpus = self._device.engine, self._engine.gpus
        versions = {"jupiterd": __version__, engine: version(engine)}
        name = gpus[0] if gpus else self._device.kind
        plan = self._setup.plan
        batch, options = plan.batch_sequences, self._engine.options
        return key_of(self._setup.shape, batch, options, name, versions, plan.options.adapter)
