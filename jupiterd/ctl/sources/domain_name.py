"""Checks of a domain file's values beyond its schema: its name, its language and its questions.

Owns those checks, which are made when a cycle starts. They aren't part of the schema, because a
recorded cycle with another language must still run. The name is checked because a copied file with
the old name would run under that name.
"""

from jupiterd.ctl.sources.domain_files import DomainFile
from jupiterd.ctl.sources.domain_questions import questions_mistake
from jupiterd.cycle.base.yaml_text import line_finder
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.text_rules.languages import language_mistake
from jupiterd.errors import InvalidDomainError


def checked_domain(file: DomainFile) -> Domain:
    """Return the domain of a file.

    Raises:
        InvalidDomainError: the file has a mistake; it names file, line and what was expected.
    """
    domain = parse_domain(file.text, str(file.path))
    for mistake in value_mistakes(file, domain):
        raise InvalidDomainError(mistake, "change that line, or leave it out")
    return domain


def value_mistakes(file: DomainFile, domain: Domain) -> list[str]:
    """Return the mistakes in a file that fits the schema, with line numbers."""
    found = {
        ("domain",): _name_mistake(file, domain),
        ("language",): language_mistake(domain.language),
        ("evaluation", "questions"): questions_mistake(file.path, domain),
    }
    line_of = line_finder(file.text)
    return [
        f"{file.path}:{line_of(key)}: {'.'.join(key)}: {mistake}"
        for key, mistake in found.items()
        if mistake
    ]


def _name_mistake(file: DomainFile, domain: Domain) -> str:
    if file.called in ("", domain.domain):
        return ""
    return f"expected {file.called}, as the file is called, got {domain.domain}"
