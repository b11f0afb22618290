"""What an answer is worth: the text in it, or why it is refused.

Owns how the answer is taken out of what a generator wrote, and the bounds. They are wide: what is
merely bad is up to the filters. Doesn't know generators, samples or the filters.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from jupiterd.cycle.repetition import repeated_n_gram_chars, repeats
from jupiterd.cycle.templates.asking import DOCUMENT, closed, opened
from jupiterd.cycle.templates.prompt import Written
from jupiterd.cycle.templates.refusal import Refusal
from jupiterd.cycle.templates.tables import count_rows
from jupiterd.cycle.templates.texts import RULES, TEMPLATES, Template
from jupiterd.cycle.unspaced import LETTERS_PER_WORD, letters_of

MIN_WORDS: Final = 30
MAX_REPEATED_LINES: Final = 0.3
MAX_REPEATED_CHARS: Final = 0.25
"""Share of a text in runs of REPEATED_RUN words that stood in it before."""
REPEATED_RUN: Final = 6
COPIED_RUN: Final = 8
MAX_COPIED: Final = 0.6
"""A run of so many words that the passage has too, and the share of an answer's runs that may be
such."""
LEAKED_RUN: Final = 8
"""Words of the instruction that nobody says by chance."""
MIN_ROWS: Final = 3
MIN_QUESTIONS: Final = 2
MIN_STEPS: Final = 2
MIN_PARAGRAPHS: Final = 2
DECLINES_WITHIN_CHARS: Final = 200

_WORD = re.compile(r"\w+")
_THOUGHTS = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_FENCE = re.compile(r"\A```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_PREAMBLE = re.compile(
    r"\A(sure|certainly|of course|okay|ok|absolutely|here (is|are|'s)|here\u2019s)\b[^\n]*:\s*\n+",
    re.IGNORECASE,
)
_DECLINING = re.compile(
    r"\b(i('|\u2019)?m sorry|i am sorry|i apologi[sz]e|as an ai\b|as a(n ai)? language model"
    r"|i (can(no|')?t|can\u2019t|am unable to|am not able to|won't|will not) "
    r"(help|assist|provide|do|write|answer|fulfil|comply|create|generate)"
    r"|lo siento|no puedo (ayudar|responder)|je suis d\u00e9sol\u00e9|je ne peux pas"
    r"|es tut mir leid|ich kann (das|ihnen|dir) nicht)",
    re.IGNORECASE,
)
_TURN = re.compile(r"<\|[a-z_]+\|>|\[/?INST\]|</?s>|<(start|end)_of_turn>", re.IGNORECASE)
_QUESTION = re.compile(r"[?\uff1f\u061f]\**\s*$", re.MULTILINE)
_STEP = re.compile(r"^\s*[#*]*\s*(\w+ )?\d+\s*[.):\u3001]", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n")


def judge_answer(
    template: Template, written: Written, passage: str, language: str
) -> str | Refusal:
    """Return the text that an answer holds, or why it is refused.

    Args:
        template: what was asked for.
        written: what the generator wrote.
        passage: what it was given.
        language: the domain's, such as `en`; some are counted in letters instead of words.
    """
    text = _answer_in(template, written)
    if (refusal := _declined_or_leaked(text)) is not None:
        return refusal
    return _judged(template, written, text, passage, language)


def _judged(
    template: Template, written: Written, text: str, passage: str, language: str
) -> str | Refusal:
    words, of_word = _words(text, language), LETTERS_PER_WORD.get(language, 1)
    if _is_repeated(text, words, of_word):  # first: what goes round never comes to an end
        return Refusal.REPEATED
    if not _is_whole(template, written):
        return Refusal.TRUNCATED
    if len(words) < MIN_WORDS * of_word:
        return Refusal.TOO_SHORT
    if copied_share(words, _words(passage, language), COPIED_RUN * of_word) > MAX_COPIED:
        return Refusal.COPY
    return text if _FORMS.get(template.kind, _any_form)(text) else Refusal.MALFORMED


def copied_share(text: Sequence[str], source: Sequence[str], run: int) -> float:
    """Return the share of a text's runs of so many words that its source has too, 0 to 1."""
    runs = Counter(zip(*(text[start:] for start in range(run)), strict=False))
    known = set(zip(*(source[start:] for start in range(run)), strict=False))
    found = sum(times for each, times in runs.items() if each in known)
    return found / max(1, runs.total())


def _answer_in(template: Template, written: Written) -> str:
    """Return what was written without its wrappings, up to the mark that ends it."""
    text = _THOUGHTS.sub("", written.text)
    text = text.split(closed(template.kind))[0].strip()
    text = text.removeprefix(opened(template.kind)).strip()
    text = _PREAMBLE.sub("", text)
    if (fenced := _FENCE.match(text)) is not None:
        text = fenced[1].strip()
    return text


def _is_whole(template: Template, written: Written) -> bool:
    return written.is_whole or closed(template.kind) in written.text


def _declined_or_leaked(text: str) -> Refusal | None:
    if not text:
        return Refusal.EMPTY
    if _DECLINING.search(text[:DECLINES_WITHIN_CHARS]):
        return Refusal.DECLINED
    marks = opened(DOCUMENT), closed(DOCUMENT), *map(opened, TEMPLATES)
    if any(mark in text for mark in marks) or _TURN.search(text):
        return Refusal.LEAKS_PROMPT
    words = [word.lower() for word in _WORD.findall(text)]
    runs = set(zip(*(words[start:] for start in range(LEAKED_RUN)), strict=False))
    return None if runs.isdisjoint(_TOLD) else Refusal.LEAKS_PROMPT


def _words(text: str, language: str) -> list[str]:
    """Return the words in lower case; the letters, where no spaces stand between words."""
    if language in LETTERS_PER_WORD:
        return list(letters_of(text))
    return [word.lower() for word in _WORD.findall(text)]


def _is_repeated(text: str, words: Sequence[str], of_word: int) -> bool:
    lines = [line.strip() for line in text.split("\n") if len(line.strip()) > 3]
    if repeats(lines)[0] > MAX_REPEATED_LINES:
        return True
    chars = sum(map(len, words))
    return repeated_n_gram_chars(words, REPEATED_RUN * of_word) > MAX_REPEATED_CHARS * chars


def _has_questions(text: str) -> bool:
    return len(_QUESTION.findall(text)) >= MIN_QUESTIONS


def _has_rows(text: str) -> bool:
    return count_rows(text) > MIN_ROWS  # and the header


def _has_steps(text: str) -> bool:
    return len(_STEP.findall(text)) >= MIN_STEPS


def _has_paragraphs(text: str) -> bool:
    return len(_PARAGRAPH.split(text)) >= MIN_PARAGRAPHS


def _any_form(_text: str) -> bool:
    return True


_FORMS: Final[Mapping[str, Callable[[str], bool]]] = {
    "faq": _has_questions,
    "table": _has_rows,
    "tutorial": _has_steps,
    "worked_problem": _has_paragraphs,
}


def _told() -> frozenset[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for said in (RULES, *(template.instruction for template in TEMPLATES.values())):
        words = [word.lower() for word in _WORD.findall(said)]
        found.update(zip(*(words[start:] for start in range(LEAKED_RUN)), strict=False))
    return frozenset(found)


_TOLD = _told()
"""Every run of LEAKED_RUN words of all instructions."""
