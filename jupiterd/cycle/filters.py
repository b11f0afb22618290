"""Which texts are worth training on: the same rules for real and for generated ones.

Owns which rules a text meets, and the version of all of them together. Doesn't know the rules
themselves (`prose_rules`, `code_rules`), files, or duplicates between texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jupiterd.cycle.code_rules import is_vendored, judge_code
from jupiterd.cycle.drop_reason import DropReason
from jupiterd.cycle.lineage import Sample
from jupiterd.cycle.prose_rules import judge_prose
from jupiterd.cycle.templates.tables import TABLE, without_rows

FILTERS = "filters@3"
"""Name@version of everything that decides on a sample; another one where a verdict may differ."""

_CODE = "code:"
SCORE_DIGITS = 4


@dataclass(frozen=True)
class Judgement:
    """What the rules say of one text."""

    reason: DropReason | None
    """Why it is dropped; None keeps it."""
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """What was measured of a text that is kept."""
    measure: str = ""
    """What was measured of a text that is dropped, such as `words`; empty: nothing was counted."""
    value: float = 0.0
    limit: float = 0.0
    """The least or the most that `measure` could have been, whichever it missed."""


def is_code(language: str) -> bool:
    """Say whether a domain's language is a programming language."""
    return language.startswith(_CODE)


def judge_sample(sample: Sample, language: str) -> Judgement:
    """Return why the sample is dropped, or what was measured of it.

    Args:
        sample: any sample; whether it is real plays no part.
        language: the domain's, such as `code:python` or `en`.
    """
    if is_code(language) and is_vendored(sample.source_uri):
        return Judgement(DropReason.VENDORED)
    is_table = sample.template == TABLE
    return judge_text(without_rows(sample.text) if is_table else sample.text, language)


def judge_text(text: str, language: str) -> Judgement:
    """Return why a text in `language` is dropped, or what was measured of it."""
    if is_code(language):
        return Judgement(*judge_code(text, language.removeprefix(_CODE)))
    return Judgement(*judge_prose(text, language))


def passed(sample: Sample, scores: Mapping[str, float]) -> Sample:
    """Return the sample with what the filters measured of it."""
    rounded = {name: round(value, SCORE_DIGITS) for name, value in scores.items()}
    return replace(sample, filters=FILTERS, filter_scores=rounded)
