"""Checks of a domain file's values in addition to its form: its name, and its language.

Owns those checks of a file that somebody starts with now. A cycle that was recorded with another
language goes on, so they aren't part of the form. A copy of another domain's file would run, and be
shown, under the other's name.
"""

from jupiterd.ctl.sources.domain_files import DomainFile
from jupiterd.cycle.base.yaml_text import line_finder
from jupiterd.cycle.domain.domain import Domain, parse_domain
from jupiterd.cycle.text_rules.languages import language_mistake
from jupiterd.errors import InvalidDomainError


def checked_domain(file: DomainFile) -> Domain:
    """Return the domain of a file.

    Raises:
        InvalidDomainError: with file, line and what was expected there, for the first mistake.
    """
    domain = parse_domain(file.text, str(file.path))
    for mistake in value_mistakes(file, domain):
        raise InvalidDomainError(mistake, "change that line, or leave it out")
    return domain


def value_mistakes(file: DomainFile, domain: Domain) -> list[str]:
    """Return what is wrong with a file whose form is right, with its lines; none: nothing."""
    found = {"domain": _name_mistake(file, domain), "language": language_mistake(domain.language)}
    line_of = line_finder(file.text)
    return [
        f"{file.path}:{line_of((key,))}: {key}: {mistake}"
        for key, mistake in found.items()
        if mistake
    ]


def _name_mistake(file: DomainFile, domain: Domain) -> str:
    if file.called in ("", domain.domain):
        return ""
    return f"expected {file.called}, as the file is called, got {domain.domain}"
