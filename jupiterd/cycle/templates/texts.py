"""The templates that make prose of a document: what each asks for, in words.

Owns the instructions, and a version of each that follows from its words. Doesn't know documents,
generators or how an answer is judged.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from jupiterd.cycle.templates.short_tasks import (
    EXERCISE,
    EXPLANATION,
    QUESTION_ANSWER,
    SUMMARY,
    Words,
)

VERSION_DIGITS: Final = 8

RULES: Final = (
    "Use nothing but what the document says, and leave nothing important out. "
    "Write it in the language of the document, in your own words; copy no sentence. "
    "It must be understood by somebody who never saw the document, so don't mention it. "
    "Answer with the text alone, without a greeting or a remark."
)
"""Said with every instruction that stands before its document."""


@dataclass(frozen=True)
class Template:
    """One way of rewriting a document."""

    kind: str
    """Its name in a domain file, and the mark in which a base model writes it."""
    instruction: str = ""
    """What is asked in front of the document; empty: `words` are asked behind it."""
    words: Words | None = None
    """What small models are asked, too: by what the document is, and its language."""

    @property
    def version(self) -> str:
        """Return its kind and a hash of its words: with other words samples are others."""
        said = f"{self.kind}\0{self.instruction}\0{RULES}"
        if self.words is not None:
            said = f"{self.kind}\0{json.dumps(self.words, sort_keys=True)}"
        return f"{self.kind}@{blake3(said.encode()).hexdigest()[:VERSION_DIGITS]}"


_ALL = (
    Template("question_answer", words=QUESTION_ANSWER),
    Template("explanation", words=EXPLANATION),
    Template("summary", words=SUMMARY),
    Template("exercise", words=EXERCISE),
    Template(
        "faq",
        "Write the questions that readers ask most about the subject of the document, and answer "
        "each of them in full sentences. Put each question on a line of its own that ends with a "
        "question mark, and its answer below it.",
    ),
    Template(
        "tutorial",
        "Write a tutorial that teaches a beginner what the document is about. Begin with what it "
        "is good for, go on step by step, number the steps, and say of each why it is done.",
    ),
    Template(
        "worked_problem",
        "Write an exercise that can be solved with what the document says. State the problem with "
        "everything that is needed in a first paragraph, then solve it in several further "
        "paragraphs, with each thought that leads to the result.",
    ),
    Template(
        "table",
        "Put the facts of the document into a Markdown table with a header and at least three "
        "rows. Below the table write a paragraph for each row that says the same in full "
        "sentences.",
    ),
    Template(
        "rewrite",
        "Rewrite the document as a well-edited article for an encyclopedia: clear, connected, in "
        "full sentences, without navigation, advertisements or repetitions.",
    ),
)

TEMPLATES: Final[Mapping[str, Template]] = {template.kind: template for template in _ALL}
"""By their kinds."""

USUAL: Final = tuple(template.kind for template in _ALL if template.words is not None)
"""The kinds of a domain that names none."""
