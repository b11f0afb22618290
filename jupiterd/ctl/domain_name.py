"""Whether a domain that people call by its name is the one that its file says.

Owns that check: a copy of another domain's file would run, and be shown, under the other's name.
"""

from jupiterd.ctl.domain_files import DomainFile
from jupiterd.cycle.domain import Domain, parse_domain
from jupiterd.cycle.yaml_text import line_finder
from jupiterd.errors import InvalidDomainError


def checked_domain(file: DomainFile) -> Domain:
    """Return the domain of a file.

    Raises:
        InvalidDomainError: with file, line and what was expected there, for the first mistake.
    """
    domain = parse_domain(file.text, str(file.path))
    if mistake := name_mistake(file, domain):
        raise InvalidDomainError(mistake, "change that line, or leave it out")
    return domain


def name_mistake(file: DomainFile, domain: Domain) -> str:
    """Return what is wrong with the name that a file gives itself; empty: nothing."""
    if file.called in ("", domain.domain):
        return ""
    line = line_finder(file.text)(("domain",))
    return (
        f"{file.path}:{line}: domain: expected {file.called}, as the file is called, "
        f"got {domain.domain}"
    )
