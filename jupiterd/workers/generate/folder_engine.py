"""A model folder that writes, whichever library computes it: many prompts at once.

Owns the batch size, halving it where memory runs out, and what its tokenizer knows of a prompt.
Doesn't know the library, or what is asked.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer
from jupiterd.workers import thread_share
from jupiterd.workers.generate.engine import OnTokens, Request, Sampling, nobody
from jupiterd.workers.generate.model_text import ModelText
from jupiterd.workers.memory_room import with_room_for_all

log = logging.getLogger(__name__)

LOOK_EVERY_TOKENS = 8
"""A text is looked at so often for whether it has come to its end: to decode it costs time."""


class FolderEngine(ABC):
    """Writes with a model that lies in a folder."""

    def __init__(self, text: ModelText, batch: int) -> None:
        """Take the folder's tokenizer, and with how many prompts at once it begins."""
        self._text = text
        self.batch = batch
        self.specials: Sequence[str] = text.specials

    def size(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has."""
        return len(self._text.ids(prompt))

    def fits(self, prompt: Prompt, max_tokens: int) -> bool:
        """Say whether the model can hold a prompt and what is to be written."""
        return self._text.fits(self.size(prompt), max_tokens)

    def write(
        self, requests: Sequence[Request], sampling: Sampling, on_tokens: OnTokens = nobody
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        """Yield each answer as soon as it is whole; half as many at once where memory runs out.

        Raises:
            ModelTooLargeError: there is no room for a single one.
        """

        def attempt(numbers: Sequence[int]) -> Iterator[tuple[int, WrittenAnswer]]:
            thread_share.take()
            chosen = [requests[number] for number in numbers]
            for at, written in self._written(chosen, sampling, on_tokens):
                yield numbers[at], written

        yield from with_room_for_all(len(requests), self.batch, attempt, self._take_fewer, "prompt")

    @abstractmethod
    def _written(
        self, chosen: Sequence[Request], sampling: Sampling, on_tokens: OnTokens
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        """Yield the answers to these, which are written all at once, as soon as each is whole."""

    def _take_fewer(self, at_a_time: int) -> None:
        log.warning("smaller_batch: memory ran out, %d prompts at once from now on", at_a_time)
        self.batch = at_a_time

    def _is_done(self, request: Request, row: Sequence[int]) -> bool:
        """Say whether nothing more is wanted behind these tokens; it is looked at now and then."""
        is_looked_at = len(row) % LOOK_EVERY_TOKENS == 0
        return is_looked_at and request.is_done(self._text.decode(row))

    def _answer(self, request: Request, row: Sequence[int], *, is_whole: bool) -> WrittenAnswer:
        """Return the tokens that were written as an answer."""
        opened = self._text.is_opened(request.prompt)
        return WrittenAnswer(self._text.decode(row), len(row), is_whole, opened)
