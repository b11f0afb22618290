"""The templates that make prose of a document: each passage of a document can be asked about.

Owns which passages are chosen, and how one is made to fit. Doesn't know the words of a prompt, nor
what an answer is worth (`cycle.templates`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jupiterd.cycle.base.unsegmented_scripts import LETTERS_PER_WORD
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.data.mixing import MAX_VARIANTS
from jupiterd.cycle.domain.filters import is_code
from jupiterd.cycle.templates.answers import judge_answer
from jupiterd.cycle.templates.asking import ask, defused, ends
from jupiterd.cycle.templates.loops import loop_start
from jupiterd.cycle.templates.pairs import origin
from jupiterd.cycle.templates.passages import MAX_CHARS, MIN_CHARS, passages
from jupiterd.cycle.templates.prompt import Prompt, WrittenAnswer
from jupiterd.cycle.templates.refusal import RefusedAnswer
from jupiterd.cycle.templates.short_tasks import ENGLISH, subject_of
from jupiterd.cycle.templates.texts import Template
from jupiterd.protocol.frames import Scalar
from jupiterd.workers.generate.grounded_prompt import Fits, GroundedPrompt

MAX_SHORT_CHARS = 2_000
"""Of a passage in front of a short task: of more, small models lose what they were asked."""

UNSPACED_SHARE = 3
"""A letter of Chinese is about a token, one of English a quarter: so much shorter is a passage."""


@dataclass(frozen=True)
class RewritingPrompt:
    """One passage that is to become another text."""

    parent: Sample
    template: Template
    passage: str
    number: int
    """Of the passage in its document."""
    max_chars: int
    """How long passages were cut."""
    language: str
    """The natural one in which an answer is wanted."""

    @property
    def prompt(self) -> Prompt:
        """What the generator is given."""
        subject = subject_of(kind_of(self.parent))
        return ask(self.template, self.passage, subject, self.language)

    @property
    def origin(self) -> Mapping[str, Scalar]:
        """The passage, in the form that `pairs` looks up."""
        return origin(self.number, self.max_chars)

    def is_done(self, written: str) -> bool:
        """Say whether a model has come to the end, or goes round in circles."""
        has_looped = self.template.words is not None and loop_start(written) is not None
        return has_looped or ends(self.template, written)

    def taken(self, written: WrittenAnswer) -> str | RefusedAnswer:
        """Return the new text, or why there is none."""
        return judge_answer(self.template, written, self.passage, self.language)


class RewritingPromptMaker:
    """Finds the passages of a document."""

    def __init__(self, template: Template, language: str, specials: Iterable[str]) -> None:
        self.version = template.version
        self._template = template
        self._language = language
        self._specials = tuple(specials)
        most = MAX_CHARS if template.words is None else MAX_SHORT_CHARS
        self._max_chars = most // UNSPACED_SHARE if language in LETTERS_PER_WORD else most

    def asks(
        self, parent: Sample, fits: Fits, shuffle: Callable[[list[int]], None]
    ) -> Sequence[GroundedPrompt]:
        """Return the passages of a document, cut so that the generator can hold them."""
        text, language = defused(parent.text, self._specials), self._language_of(parent)
        max_chars = self._max_chars
        while max_chars >= MIN_CHARS:
            found = passages(text, max_chars)
            asks = [
                RewritingPrompt(parent, self._template, passage, number, max_chars, language)
                for number, passage in enumerate(found)
            ]
            longest = max(asks, key=lambda each: len(each.passage), default=None)
            if longest is None or fits(longest.prompt):
                order = [*range(len(asks))]
                shuffle(order)
                return [asks[number] for number in order[:MAX_VARIANTS]]
            max_chars //= 2
        return []

    def _language_of(self, parent: Sample) -> str:
        """Return the natural language in which an answer is wanted: of code, the domain's."""
        languages = (language for language in (parent.language, self._language) if language)
        return next((language for language in languages if not is_code(language)), ENGLISH)


def kind_of(sample: Sample) -> str:
    """Return what a sample is; what older versions collected is told by its language alone."""
    if sample.document_kind or not is_code(sample.language):
        return sample.document_kind
    return sample.language
