"""Which prompts the models of a cycle answer, for people to read side by side.

Owns the choice: of development text, spread over its clusters, the same in every round of a cycle.
Of a conversation the user's question is asked; of other text its beginning is gone on from. Pure.
Doesn't know models, files, or the gate, which has text of its own that nobody is shown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from jupiterd.cycle.data.instruction_rows import USER, Conversation, conversation_in
from jupiterd.cycle.data.lineage import Sample, text_hash
from jupiterd.cycle.data.split import DEV, held_out_part
from jupiterd.cycle.judge.planted import begun
from jupiterd.cycle.templates.prompt import Prompt

PROMPTS: Final = 20
"""A cycle has so many, where there is enough development text."""

MAX_QUESTION_CHARS: Final = 600
"""A longer question isn't asked: half of one would be another."""


PART_CHARS: Final = 1_000
"""A document may give further prompts, at paragraphs that stand so far apart at the least."""

MAX_PARTS: Final = 5
"""Of one document."""

_PARAGRAPH: Final = re.compile(r"\n\n+(?=\S)")


@dataclass(frozen=True)
class AskedPrompt:
    """What all models of a cycle are asked once in each round."""

    document: str
    """BLAKE3 of the held-out text that it is of, or of its part."""
    text: str
    is_question: bool = False
    """It is what a user says, and no text to go on from."""

    def for_models(self) -> Prompt:
        """Return it as models are given it: talked to by their own template, or to go on from."""
        return Prompt(self.text, self.text, goes_on=not self.is_question)


@dataclass(frozen=True)
class _Found:
    prompt: AskedPrompt
    cluster: str
    part: int = 0
    """Its number in the document: there are others only where documents are few."""


def chosen_prompts(
    held_out: Iterable[Sample], language: str, cycle: str, before: Sequence[AskedPrompt] = ()
) -> tuple[AskedPrompt, ...]:
    """Return the cycle's prompts; fewer than `PROMPTS` where there is little development text.

    Args:
        held_out: all text that nobody trains on, of any part.
        language: of the domain; code is cut where it can be parsed.
        cycle: its id decides which text is taken.
        before: those of the round before, which stay as long as their text is held out.
    """
    found = _prompts_of(held_out, language)
    old = [each for each in dict.fromkeys(p.document for p in before) if each in found][:PROMPTS]
    new = [each for document, each in found.items() if document not in old]
    return (*(found[each].prompt for each in old), *_spread(new, cycle, PROMPTS - len(old)))


def _prompts_of(held_out: Iterable[Sample], language: str) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for sample in held_out:
        if held_out_part(sample.split) != DEV:
            continue
        for part, prompt in enumerate(_prompts(sample, language)):
            found[prompt.document] = _Found(prompt, sample.cluster_id, part)
    return found


def _prompts(sample: Sample, language: str) -> Iterator[AskedPrompt]:
    """Yield what is asked about one document, its own beginning first."""
    said = conversation_in(sample)
    if said is not None:
        if question := _question(said):
            yield AskedPrompt(text_hash(sample.text), question, is_question=True)
        return
    for text in _parts(sample.text):
        cut = begun(text_hash(text), sample.cluster_id, text, language)
        if cut is not None:
            yield AskedPrompt(cut.document, cut.beginning)


def _parts(text: str) -> Iterator[str]:
    """Yield a text, then what is left of it from later paragraphs on."""
    yield text
    start, parts = 0, 1
    for paragraph in _PARAGRAPH.finditer(text):
        if parts < MAX_PARTS and paragraph.end() - start >= PART_CHARS:
            start, parts = paragraph.end(), parts + 1
            yield text[start:]


def _question(said: Conversation) -> str:
    """Return what a user asks at once; nothing where more was said before the first answer."""
    if not said.answers:
        return ""
    users = [each.content for each in said.messages[: said.answers[0]] if each.role == USER]
    is_asked = len(users) == 1 and 0 < len(users[0].strip()) <= MAX_QUESTION_CHARS
    return users[0] if is_asked else ""


def _spread(found: Iterable[_Found], cycle: str, wanted: int) -> list[AskedPrompt]:
    """Return so many, of as many clusters as there are; a hash with the cycle's id decides."""
    placed = {_place(each, cycle): each for each in found}
    of_cluster: Counter[tuple[int, str]] = Counter()
    ranked: list[tuple[int, int, bytes, AskedPrompt]] = []
    for place, each in sorted(placed.items()):
        of_cluster[each.part, each.cluster] += 1
        ranked.append((each.part, of_cluster[each.part, each.cluster], place, each.prompt))
    return [each[-1] for each in sorted(ranked, key=lambda each: each[:3])[:wanted]]


def _place(found: _Found, cycle: str) -> bytes:
    return blake3(f"{cycle}\0{found.prompt.document}".encode()).digest(16)
