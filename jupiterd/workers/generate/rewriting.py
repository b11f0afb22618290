"""The templates that make prose of prose: each passage of a document can be asked about.

Owns which passages are chosen, and how one is made to fit. Doesn't know the words of a prompt, nor
what an answer is worth (`cycle.templates`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.lineage import Sample
from jupiterd.cycle.mixing import MAX_VARIANTS
from jupiterd.cycle.templates.answers import judge_answer
from jupiterd.cycle.templates.asking import ask, defused, ends
from jupiterd.cycle.templates.pairs import origin
from jupiterd.cycle.templates.passages import MAX_CHARS, MIN_CHARS, passages
from jupiterd.cycle.templates.prompt import Prompt, Written
from jupiterd.cycle.templates.refusal import Refusal
from jupiterd.cycle.templates.texts import Template
from jupiterd.cycle.unspaced import LETTERS_PER_WORD
from jupiterd.frames import Scalar
from jupiterd.workers.generate.ask import Ask, Fits

UNSPACED_SHARE = 3
"""A letter of Chinese is about a token, one of English a quarter: so much shorter is a passage."""


@dataclass(frozen=True)
class RewritingAsk:
    """One passage that is to become another text."""

    parent: Sample
    template: Template
    passage: str
    number: int
    """Of the passage in its document."""
    max_chars: int
    """How long passages were cut."""
    language: str

    @property
    def prompt(self) -> Prompt:
        """What the generator is given."""
        return ask(self.template, self.passage)

    @property
    def origin(self) -> Mapping[str, Scalar]:
        """The passage, in the form that `pairs` looks up."""
        return origin(self.number, self.max_chars)

    def is_done(self, written: str) -> bool:
        """Say whether a base model has come to the end."""
        return ends(self.template, written)

    def taken(self, written: Written) -> str | Refusal:
        """Return the new text, or why there is none."""
        return judge_answer(self.template, written, self.passage, self.language)


class RewritingAsker:
    """Finds the passages of a document."""

    def __init__(self, template: Template, language: str, specials: Iterable[str]) -> None:
        self.version = template.version
        self._template = template
        self._language = language
        self._specials = tuple(specials)
        is_unspaced = language in LETTERS_PER_WORD
        self._max_chars = MAX_CHARS // UNSPACED_SHARE if is_unspaced else MAX_CHARS

    def asks(
        self, parent: Sample, fits: Fits, shuffle: Callable[[list[int]], None]
    ) -> Sequence[Ask]:
        """Return the passages of a document, cut so that the generator can hold them."""
        text = defused(parent.text, self._specials)
        max_chars = self._max_chars
        while max_chars >= MIN_CHARS:
            found = passages(text, max_chars)
            asks = [
                RewritingAsk(parent, self._template, passage, number, max_chars, self._language)
                for number, passage in enumerate(found)
            ]
            longest = max(asks, key=lambda each: len(each.passage), default=None)
            if longest is None or fits(longest.prompt):
                order = [*range(len(asks))]
                shuffle(order)
                return [asks[number] for number in order[:MAX_VARIANTS]]
            max_chars //= 2
        return []
