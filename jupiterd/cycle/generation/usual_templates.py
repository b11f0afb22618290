"""What is generated for a domain that names no templates: the usual tasks, or nothing.

Owns which. A generator that others made can do them; a student of our own has never seen a task
that nobody did before it, so without one nothing is asked. Doesn't know the words of a task.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cycle.domain.domain import (
    CompleteFunctionTemplate,
    Domain,
    RewritingTemplate,
    domain_text,
)
from jupiterd.cycle.generation.chat_models import asking
from jupiterd.cycle.templates.texts import USUAL
from jupiterd.errors import UsageError

SAMPLES: Final = 100
"""Of each task in a round."""

PYTHON: Final = "code:python"

Template = CompleteFunctionTemplate | RewritingTemplate


def domain_with(domain: Domain, generator: Mapping[str, Any]) -> Domain:
    """Return the domain with the usual templates where it names none and others' model writes.

    generator: as a cycle's first fact holds it; empty: there is none
    """
    if not generator or "templates" in domain.generation.model_fields_set:
        return domain
    usual = {"templates": usual_templates(domain.language)}
    generation = domain.generation.model_copy(update=usual)
    return domain.model_copy(update={"generation": generation})


def recorded(
    text: str, domain: Domain, generator: Mapping[str, Any], *, by_base: bool = False
) -> tuple[str, Domain]:
    """Return what a cycle's first fact says of its domain: its text, with what is asked spelt out.

    So whoever resumes it asks the same, though another version has other usual tasks.

    by_base: the generator is the chat model that the cycle begins with, and nobody named it
    """
    resolved = asking(domain) if by_base else domain_with(domain, generator)
    return (text if resolved is domain else domain_text(resolved)), resolved


def usual_templates(language: str) -> tuple[Template, ...]:
    """Return the templates of a domain that names none."""
    tasks = tuple(
        RewritingTemplate.model_validate({"kind": kind, "samples": SAMPLES}) for kind in USUAL
    )
    is_python = language == PYTHON
    return (CompleteFunctionTemplate(kind="complete_function"), *tasks) if is_python else tasks


def check_is_used(domain: Domain, generator: Mapping[str, Any]) -> None:
    """Raise UsageError where a generator is named and nothing is asked of it."""
    if generator and not domain_with(domain, generator).generation.templates:
        raise UsageError(
            f"the domain {domain.domain} wants no generated text: "
            "its generation.templates are empty",
            "leave that line out of its file for the usual ones, or start without --generator",
        )
