"""`jupiterctl domain ...`: what a model is to become an expert in."""

from typing import Any

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.console import SCHEMA, Console
from jupiterd.ctl.domain_files import read_domain_file, shipped_domains
from jupiterd.ctl.invocation import Invocation
from jupiterd.errors import InvalidDomainError
from jupiterd.formats import table


@click.group(cls=Group)
def command() -> None:
    """Knowledge domains: what a model is to become an expert in."""


@command.command("list")
@click.pass_obj
def list_domains(invocation: Invocation) -> None:
    """List the domains that come with Jupiter; asks no daemon.

    \b
    Examples:
      jupiterctl domain list
      jupiterctl domain list -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    domains = [_described(name) for name in shipped_domains()]
    Console.of(invocation).show(
        {"schema": SCHEMA, "domains": domains},
        lambda: table(
            ("DOMAIN", "LANGUAGE", "TITLE"),
            [(item["domain"], item["language"], item["title"]) for item in domains],
        ),
    )


@command.command()
@click.argument("domain", metavar="NAME|FILE")
@click.pass_obj
def lint(invocation: Invocation, domain: str) -> None:
    """Check a domain file; show every mistake with its line.

    \b
    Examples:
      jupiterctl domain lint python
      jupiterctl domain lint ./cooking.yaml
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.cycle.domain import domain_mistakes

    file = read_domain_file(domain)
    mistakes = domain_mistakes(file.text, str(file.path))
    Console.of(invocation).show(
        {"schema": SCHEMA, "file": str(file.path), "mistakes": list(mistakes)},
        lambda: mistakes or [f"{file.path}: no mistakes"],
    )
    if mistakes:
        count = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise InvalidDomainError(
            f"{file.path} has {count}", "config/domains/_template.yaml shows every key"
        )


def _described(name: str) -> dict[str, Any]:
    """Return what a list says of a domain; one with mistakes is listed all the same."""
    from jupiterd.cycle.domain import parse_domain

    file = read_domain_file(name)
    try:
        domain = parse_domain(file.text, str(file.path))
    except InvalidDomainError as error:
        return {"domain": name, "language": None, "title": error.message, "file": str(file.path)}
    return {
        "domain": name,
        "language": domain.language,
        "title": domain.title,
        "file": str(file.path),
    }
