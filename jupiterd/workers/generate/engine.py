"""What writes: the one form in which a model here, or a server, is asked.

Owns that form. Doesn't know templates, samples, or who answers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn."""

    max_tokens: int
    """Written for each prompt at most."""
    temperature: float
    """0 takes the likeliest."""
    top_p: float
    """Share of the probability that is drawn from."""


@dataclass(frozen=True)
class Request:
    """One prompt, and what decides its answer beside model and sampling."""

    prompt: Prompt
    seed: int
    is_done: Callable[[str], bool] = lambda _: False
    """Says of what was written so far that nothing more is wanted."""


OnTokens = Callable[[int], None]
"""Told, while an answer is written, how many tokens have come since it was told last, about."""


def nobody(_tokens: int) -> None:
    """Take no notice of how the writing goes."""


class WritingEngine(Protocol):
    """A model that writes."""

    batch: int
    """Prompts that are best written at once."""
    specials: Sequence[str]
    """What reads as a mark of its own in a text, such as <|im_end|>."""

    def size(self, prompt: Prompt) -> int:
        """Return how many tokens a prompt has; a server's are estimated."""
        ...

    def fits(self, prompt: Prompt, max_tokens: int) -> bool:
        """Say whether the model can hold a prompt and what is to be written."""
        ...

    def write(
        self, requests: Sequence[Request], sampling: Sampling, on_tokens: OnTokens = nobody
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        """Yield the answers as they come, each with its request's number among these.

        on_tokens: hears how the writing goes, before the first answer is whole

        Raises:
            JupiterError: the model can't answer.
        """
        ...
