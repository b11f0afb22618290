"""What an answer is worth: the text in it, or why it is refused.

Owns how the answer is taken out of what a generator wrote, and the bounds. They are wide: what is
merely bad is up to the filters. Doesn't know generators, samples, the filters, or which form a
template asks for (`answer_forms`).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from jupiterd.cycle.base.unsegmented_scripts import LETTERS_PER_WORD, letters_of
from jupiterd.cycle.templates.answer_forms import form_mistake
from jupiterd.cycle.templates.asking import DOCUMENT, closed, opened
from jupiterd.cycle.templates.chat_phrases import without_chat
from jupiterd.cycle.templates.grounding import grounded_share, unknown_hosts
from jupiterd.cycle.templates.loops import before_loop, loop_start
from jupiterd.cycle.templates.prompt import WrittenAnswer
from jupiterd.cycle.templates.refusal import Refusal, RefusedAnswer
from jupiterd.cycle.templates.texts import RULES, TEMPLATES, Template
from jupiterd.cycle.text_rules.repetition import repeated_n_gram_chars, repeats

MIN_WORDS: Final = 30
MAX_REPEATED_LINES: Final = 0.3
MAX_REPEATED_CHARS: Final = 0.25
"""Share of a text in runs of REPEATED_RUN words that stood in it before."""
REPEATED_RUN: Final = 6
COPIED_RUN: Final = 8
MAX_COPIED: Final = 0.6
"""A run of so many words that the passage has too, and the share of an answer's runs that may be
such."""
MIN_GROUNDED: Final = 0.2
"""Share of an answer's terms that the passage must have: nine answers of ten about another page of
the same subject have less, and free retellings have a quarter at least."""
LEAST_GROUNDED: Final = MappingProxyType({"exercise": 0.3})
"""Templates that need more of them: an exercise that a model makes up has a fifth by chance, for
"write", "function" and "example" stand in most documentation."""
LEAKED_RUN: Final = 8
"""Words of the instruction that nobody says by chance."""
DECLINES_WITHIN_CHARS: Final = 200

_WORD = re.compile(r"\w+")
_THOUGHTS = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_FENCE = re.compile(r"\A```[a-z]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_RULE = re.compile(r"\n+[ \t]*-{3,}[ \t]*\n+")
_DECLINING = re.compile(
    r"\b(i('|\u2019)?m sorry|i am sorry|i apologi[sz]e|as an ai\b|as a(n ai)? language model"
    r"|i (can(no|')?t|can\u2019t|am unable to|am not able to|won't|will not) "
    r"(help|assist|provide|do|write|answer|fulfil|comply|create|generate)"
    r"|lo siento|no puedo (ayudar|responder)|je suis d\u00e9sol\u00e9|je ne peux pas"
    r"|es tut mir leid|ich kann (das|ihnen|dir) nicht)",
    re.IGNORECASE,
)
_MENTIONS = re.compile(
    r"\b(?:text|passage|document|documentation|code|snippet) (?:above|provided|given)\b"
    r"|\b(?:above|provided|given) (?:text|passage|document|documentation|code|snippet)\b"
    r"|\bdocumented above\b|\bse documenta arriba\b"
    r"|\banswers? to (?:this|the) questions? (?:can be|is|are) found\b"
    r"|\brespuestas? a est(?:a|as) preguntas? (?:se encuentran?|est\u00e1n?) en\b"
    r"|\b(?:texto|documento|c\u00f3digo|documentaci\u00f3n) (?:anterior|de arriba|proporcionad.)\b",
    re.IGNORECASE,
)
"""What nobody understands, or learns anything from, who sees the answer alone."""
_TURN = re.compile(r"<\|[a-z_]+\|>|\[/?INST\]|</?s>|<(start|end)_of_turn>", re.IGNORECASE)


def judge_answer(
    template: Template, written: WrittenAnswer, passage: str, language: str
) -> str | RefusedAnswer:
    """Return the text that an answer holds, or why it is refused.

    Args:
        template: what was asked for.
        written: what the generator wrote.
        passage: what it was given.
        language: the natural one of the answer, such as `en`; some are counted in letters instead
            of words.
    """
    text = _answer_in(template, written)
    if (refusal := _declined_or_leaked(text)) is not None:
        return RefusedAnswer(refusal)
    return _judged(template, written, text, passage, language)


def _judged(
    template: Template, written: WrittenAnswer, text: str, passage: str, language: str
) -> str | RefusedAnswer:
    words, of_word = _words(text, language), LETTERS_PER_WORD.get(language, 1)
    if (repeated := _repeated(text, words, of_word)) is not None:
        return repeated  # first: what goes round never comes to an end
    if not _is_whole(template, written):
        return RefusedAnswer(Refusal.TRUNCATED)
    if len(words) < MIN_WORDS * of_word:
        return RefusedAnswer(Refusal.TOO_SHORT, "words", len(words) / of_word, MIN_WORDS)
    source = _words(passage, language)
    copied = copied_share(words, source, COPIED_RUN * of_word)
    if copied > MAX_COPIED:
        return RefusedAnswer(Refusal.COPY, "copied", copied, MAX_COPIED)
    if (ungrounded := _ungrounded(template, text, passage, language)) is not None:
        return ungrounded
    return form_mistake(template.kind, text, len(words) / max(1, len(source))) or text


def _ungrounded(template: Template, text: str, passage: str, language: str) -> RefusedAnswer | None:
    grounded = grounded_share(text, passage, language)
    if grounded < (least := LEAST_GROUNDED.get(template.kind, MIN_GROUNDED)):
        return RefusedAnswer(Refusal.UNGROUNDED, "grounded", grounded, least)
    linked = unknown_hosts(text, passage)
    return RefusedAnswer(Refusal.UNGROUNDED, "unknown_links", linked, 0) if linked else None


def copied_share(text: Sequence[str], source: Sequence[str], run: int) -> float:
    """Return the share of a text's runs of so many words that its source has too, 0 to 1."""
    runs = Counter(zip(*(text[start:] for start in range(run)), strict=False))
    known = set(zip(*(source[start:] for start in range(run)), strict=False))
    found = sum(times for each, times in runs.items() if each in known)
    return found / max(1, runs.total())


def _answer_in(template: Template, written: WrittenAnswer) -> str:
    """Return what was written without its wrappings, up to the mark that ends it."""
    text = _THOUGHTS.sub("", written.text)
    text = text.split(closed(template.kind))[0].strip()
    text = without_chat(text.removeprefix(opened(template.kind)))
    if (fenced := _FENCE.match(text)) is not None:
        text = without_chat(fenced[1])
    return text if template.words is None else before_loop(_before_echo(text))


def _before_echo(text: str) -> str:
    """Return an answer up to where its model asks itself the same, behind a rule like ours."""
    parts = _RULE.split(text)
    last = next((at for at, part in enumerate(parts) if at and _leaks(part)), len(parts))
    return text if last == len(parts) else "\n\n".join(parts[:last]).strip()


def _is_whole(template: Template, written: WrittenAnswer) -> bool:
    """Say whether an answer came to its end, by itself or since it had no more to say."""
    has_looped = template.words is not None and loop_start(written.text) is not None
    return written.is_whole or closed(template.kind) in written.text or has_looped


def _declined_or_leaked(text: str) -> Refusal | None:
    if not text:
        return Refusal.EMPTY
    if _DECLINING.search(text[:DECLINES_WITHIN_CHARS]):
        return Refusal.DECLINED
    marks = opened(DOCUMENT), closed(DOCUMENT), *map(opened, TEMPLATES)
    if any(mark in text for mark in marks) or _TURN.search(text) or _MENTIONS.search(text):
        return Refusal.LEAKS_PROMPT
    return Refusal.LEAKS_PROMPT if _leaks(text) else None


def _leaks(text: str) -> bool:
    """Say whether a text has a run of words of an instruction."""
    words = [word.lower() for word in _WORD.findall(text)]
    return not _INSTRUCTED.isdisjoint(_runs(words))


def _words(text: str, language: str) -> list[str]:
    """Return the words in lower case; the letters, where no spaces stand between words."""
    if language in LETTERS_PER_WORD:
        return list(letters_of(text))
    return [word.lower() for word in _WORD.findall(text)]


def _repeated(text: str, words: Sequence[str], of_word: int) -> RefusedAnswer | None:
    lines = [line.strip() for line in text.split("\n") if len(line.strip()) > 3]
    share = repeats(lines)[0]
    if share > MAX_REPEATED_LINES:
        return RefusedAnswer(Refusal.REPEATED, "repeated_lines", share, MAX_REPEATED_LINES)
    chars = sum(map(len, words))
    share = repeated_n_gram_chars(words, REPEATED_RUN * of_word) / max(1, chars)
    if share > MAX_REPEATED_CHARS:
        return RefusedAnswer(Refusal.REPEATED, "repeated_chars", share, MAX_REPEATED_CHARS)
    return None


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(LEAKED_RUN)), strict=False)


def _instructions() -> Iterator[str]:
    yield RULES
    for template in TEMPLATES.values():
        yield template.instruction
        for by_language in (template.words or {}).values():
            yield from by_language.values()


_INSTRUCTED: Final = frozenset(
    run for said in _instructions() for run in _runs([word.lower() for word in _WORD.findall(said)])
)
"""Every run of LEAKED_RUN words of all instructions."""
