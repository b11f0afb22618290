"""The prompt that asks for a rewriting of a passage.

Owns its forms: for models that are talked to, and for base models, which write on from text and
have seen `<doc> ... </doc> <faq> ... </faq>` at best. Doesn't know what comes back.
"""

from collections.abc import Iterable
from typing import Final

from jupiterd.cycle.templates.prompt import Prompt
from jupiterd.cycle.templates.short_tasks import ENGLISH, Subject, words_of
from jupiterd.cycle.templates.texts import RULES, Template

DOCUMENT: Final = "doc"
"""The mark around a passage."""


def opened(kind: str) -> str:
    """Return the mark that begins a part."""
    return f"<{kind}>"


def closed(kind: str) -> str:
    """Return the mark that ends it."""
    return f"</{kind}>"


def ask(
    template: Template, passage: str, subject: Subject = Subject.PROSE, language: str = ENGLISH
) -> Prompt:
    """Return the prompt that asks for one rewriting of one passage.

    Args:
        template: what is asked for.
        passage: what it is to be made of.
        subject: what that is.
        language: the natural one in which an answer is wanted.
    """
    document = f"{opened(DOCUMENT)}\n{passage}\n{closed(DOCUMENT)}\n"
    if template.words is None:
        message = f"{template.instruction} {RULES}\n\n{document}"
    else:  # small models do what they read last, and repeat marks that they don't know
        message = f"{passage}\n\n---\n{words_of(template.words, subject, language)}\n"
    return Prompt(message=message, opening=f"{document}{opened(template.kind)}\n")


def ends(template: Template, written: str) -> bool:
    """Say whether a base model has come to the end of what it writes on."""
    return any(mark in written for mark in (closed(template.kind), opened(DOCUMENT)))


def defused(passage: str, specials: Iterable[str]) -> str:
    """Return a passage in which nothing reads as a mark of ours or of the generator's.

    A document that spells one out would else end itself, and go on as the user.
    """
    for mark in (opened(DOCUMENT), closed(DOCUMENT), *specials):
        if len(mark) > 1 and mark in passage:
            passage = passage.replace(mark, f"{mark[0]} {mark[1:]}")
    return passage
