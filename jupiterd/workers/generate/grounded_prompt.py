"""One thing that a generator is asked, and what becomes of its answer.

Owns the form that all templates share. Doesn't know any of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer
from jupiterd.cycle.templates.refusal import RefusedAnswer
from jupiterd.protocol.frames import Scalar

Fits = Callable[[Prompt], bool]
"""Says whether the generator can hold a prompt and its answer."""


class GroundedPrompt(Protocol):
    """One prompt, grounded in one real sample."""

    @property
    def parent(self) -> Sample:
        """The real sample that it is grounded in."""
        ...

    @property
    def prompt(self) -> Prompt:
        """What the generator is given."""
        ...

    @property
    def origin(self) -> Mapping[str, Scalar]:
        """Which part of its document it is of, for who looks it up; empty where that is plain."""
        ...

    def is_done(self, written: str) -> bool:
        """Say of what was written on so far that nothing more is wanted."""
        ...

    def taken(self, written: WrittenAnswer) -> str | RefusedAnswer:
        """Return the text of the new sample, or why there is none."""
        ...


class PromptMaker(Protocol):
    """One template at work."""

    version: str
    """Name@version of what the samples are made by."""

    def asks(
        self, parent: Sample, fits: Fits, shuffle: Callable[[list[int]], None]
    ) -> Sequence[GroundedPrompt]:
        """Return what can be asked of one real document, the first choice first; may be empty.

        Args:
            parent: the document.
            fits: says what the generator can hold.
            shuffle: puts numbers into an order that the item's seed decides.
        """
        ...
