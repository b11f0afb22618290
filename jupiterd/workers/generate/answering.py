"""Having what was chosen answered: from what was answered before, else by the generator.

Owns the order, the tally, and that nothing which was answered is lost where the generator is.
Doesn't know where the documents come from, or what is made of the answers.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from jupiterd.cycle.generation.generation_options import TRIED
from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.cycle.templates.refusal import RefusedAnswer
from jupiterd.cycle.templates.texts import TEMPLATES
from jupiterd.errors import (
    GeneratorRefusedError,
    GeneratorUnreachableError,
    JupiterError,
    WorkStoppedError,
)
from jupiterd.workers.generate.answer_cache import AnswerCache, key_of
from jupiterd.workers.generate.documents import Numbered
from jupiterd.workers.generate.engine import Request, Sampling, WritingEngine
from jupiterd.workers.link import Task

CACHE = "answers"
"""The folder beside this node's scratch folders in which answers are kept."""

UNIT = "prompts"


@dataclass
class AnswerTally:
    """What has come of an item so far."""

    began_s: float = field(default_factory=time.monotonic)
    answered: int = 0
    accepted: int = 0
    tokens: int = 0
    """Of answers written now; those of answers that were kept cost nothing."""
    heard: int = 0
    """Tokens of all that was seen being written, whole or not."""
    cached: int = 0
    """Answers that this machine had before."""

    @property
    def writing_s(self) -> float:
        """Return how long it has been written, in seconds."""
        return time.monotonic() - self.began_s

    def rates(self) -> dict[str, float]:
        """Return tokens a second, and samples that are accepted a minute."""
        elapsed_s = max(self.writing_s, 1e-9)
        return {
            "tokens_per_s": max(self.tokens, self.heard) / elapsed_s,
            "accepted_per_min": 60 * self.accepted / elapsed_s,
        }


class Answering:
    """The answers to what one item asks."""

    def __init__(self, task: Task, engine: WritingEngine, chosen: Sequence[Numbered]) -> None:
        self._task = task
        self._engine = engine
        self._chosen = chosen
        self._sampling = sampling_of(task)
        self.tally = AnswerTally()
        self.found: dict[int, str | RefusedAnswer] = {}
        """Place among what was chosen -> the text of the answer, or why it is refused."""
        self.refused: dict[int, str] = {}
        """Place -> what the generator wrote, where it is refused."""
        self.lost: JupiterError | None = None
        """Why the generator couldn't be had for all of them; what was answered before counts."""

    def run(self) -> None:
        """Have them answered.

        Raises:
            GeneratorUnreachableError: the generator couldn't be had, and nothing was answered.
            GeneratorRefusedError: it doesn't want us, and nothing was answered.
            WorkStoppedError: the daemon asked for an end.
            JupiterError: the model can't answer.
        """
        seed = int(self._task.params["seed"])
        requests = [_request(numbered, seed) for numbered in self._chosen]
        generator = str(self._task.params["generator"])
        keys = [key_of(request, generator, self._sampling) for request in requests]
        with AnswerCache(cache_folder(self._task)) as cache:
            self._take_cached(cache, keys)
            try:
                self._ask(cache, keys, requests)
            except (GeneratorRefusedError, GeneratorUnreachableError) as error:
                if not self.found:
                    raise
                self.lost = error

    @property
    def is_hopeless(self) -> bool:
        """The generator can't do what is asked: nothing that it wrote can be used.

        Functions are asked for to the end: of a student's that is young few parse, and they count.
        """
        is_rewriting = str(self._task.params["template"]["kind"]) in TEMPLATES
        return is_rewriting and self.tally.answered >= TRIED and not self.tally.accepted

    def _take_cached(self, cache: AnswerCache, keys: Sequence[bytes]) -> None:
        for number, key in enumerate(keys):
            if (written := cache.get(key)) is not None:
                self.tally.cached += 1
                self._take(number, written)

    def _ask(self, cache: AnswerCache, keys: Sequence[bytes], requests: Sequence[Request]) -> None:
        left = [number for number in range(len(requests)) if number not in self.found]
        engine = self._engine
        engine.batch = int(self._task.params.get("batch", engine.batch))
        while left and not self.is_hopeless:
            if self._task.stop_requested:
                raise WorkStoppedError("generating was stopped")
            batch, left = left[: engine.batch], left[engine.batch :]
            chosen = [requests[number] for number in batch]
            for at, written in engine.write(chosen, self._sampling, self._hear):
                self.tally.tokens += written.tokens
                cache.put(keys[batch[at]], written)
                self._take(batch[at], written)
                if self.is_hopeless:
                    break

    def _take(self, number: int, written: WrittenAnswer) -> None:
        taken = self._chosen[number].ask.taken(written)
        self.found[number] = taken
        self.tally.answered += 1
        if isinstance(taken, RefusedAnswer):
            self.refused[number] = written.text
        else:
            self.tally.accepted += 1
        self._report()

    def _hear(self, tokens: int) -> None:
        self.tally.heard += tokens
        self._report()

    def _report(self) -> None:
        tally = self.tally
        self._task.progress(tally.answered, len(self._chosen), UNIT, **tally.rates())


def sampling_of(task: Task) -> Sampling:
    """Return how a task's tokens are drawn."""
    params = task.params
    return Sampling(int(params["max_tokens"]), float(params["temperature"]), float(params["top_p"]))


def cache_folder(task: Task) -> Path:
    """Return where this node keeps answers."""
    return task.scratch_dir.parent / CACHE


def _request(numbered: Numbered, seed: int) -> Request:
    named = f"{seed}\0{numbered.ask.parent.id}\0{numbered.variant}"
    own = int.from_bytes(blake3(named.encode()).digest(4), "big") >> 1  # servers take 31 bits
    return Request(numbered.ask.prompt, own, numbered.ask.is_done)
