"""`jupiterctl domain ...`: domains, which define what a model is trained for."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.sources.domain_files import (
    DomainFile,
    own_domains,
    read_domain_file,
    shipped_domains,
)
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import EmptySourceError, InvalidDomainError, UsageError
from jupiterd.formats import plain, table
from jupiterd.locations import config_folder

if TYPE_CHECKING:
    from jupiterd.ctl.preflight.cycle_preflight import Preflight
    from jupiterd.ctl.preflight.looking_lines import Looking
    from jupiterd.ctl.sources.source_reachability import SourceReach


@click.group(cls=Group)
def command() -> None:
    """Knowledge domains: what a model is to become an expert in."""


@command.command("list")
@click.pass_obj
def list_domains(invocation: Invocation) -> None:
    """List the domains of this folder, and those that come with Jupiter; asks no daemon.

    Files in the current folder and in config/domains below it count more than Jupiter's.

    \b
    Examples:
      jupiterctl domain list
      jupiterctl domain list -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    domains = [_described(name) for name in dict.fromkeys([*own_domains(), *shipped_domains()])]
    Console.of(invocation).show_list(
        {"schema": SCHEMA, "domains": domains},
        "domains",
        lambda: table(
            ("DOMAIN", "LANGUAGE", "TITLE", "FILE"),
            [
                (item["domain"], item["language"], item["title"], _shown_file(item["file"]))
                for item in domains
            ],
        ),
    )


@command.command()
@click.argument("domain", metavar="NAME|FILE")
@click.option("--offline", is_flag=True, help="Check the file alone; ask no source.")
@click.pass_obj
def lint(invocation: Invocation, domain: str, *, offline: bool) -> None:
    """Check a domain file and look at its sources; show every mistake with its line.

    Each source gets one short request: a look at the disk, git ls-remote, a HEAD request. What lies
    on this machine is read for ten seconds at the most, and judged by the rules of a cycle: can
    the domain be judged, how well, and what would help? Another machine may collect what isn't
    here.

    \b
    Examples:
      jupiterctl domain lint python
      jupiterctl domain lint ./cooking.yaml --offline
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.preflight.looking_lines import Looking

    file = read_domain_file(domain)
    mistakes = _mistakes(file)
    console = Console.of(invocation)
    with Looking(console) as looking:
        console.passing_notice("asking each source whether it answers")
        sources = [] if mistakes or offline else _reached(file)
        looked = None if mistakes or offline else _preflight(file, looking)
    console.show(
        {
            "schema": SCHEMA,
            "file": str(file.path),
            "mistakes": mistakes,
            "sources": [asdict(source) for source in sources],
            "text": None if looked is None else looked.to_plain(),
        },
        lambda: (
            mistakes
            or [
                f"{file.path}: no mistakes",
                *map(_reach_line, sources),
                *([] if looked is None else looked.lines()),
            ]
        ),
    )
    if mistakes:
        count = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        raise InvalidDomainError(
            f"{file.path} has {count}",
            "jupiterctl domain new NAME --from-template writes a file with every key",
        )
    if missed := [source.name for source in sources if source.problem]:
        raise EmptySourceError(
            f"sources that can't be reached: {', '.join(missed)}",
            "mend them, or check the file alone with --offline",
        )
    if looked is not None:
        looked.check()


@command.command()
@click.argument("name")
@click.option("--language", metavar="LANGUAGE", default="", help="Such as en, or code:python.")
@click.option("--from-template", is_flag=True, help="With every key there is, and its default.")
@click.option(
    "--from",
    "place",
    metavar="FOLDER|URL",
    default="",
    help="Of this text: it is looked at for ten seconds at the most.",
)
@click.option(
    "--field", metavar="NAME", default="", help="What holds the text in tables of --from; text."
)
@click.pass_obj
def new(
    invocation: Invocation, name: str, language: str, *, from_template: bool, place: str, field: str
) -> None:
    """Write a commented domain file NAME.yaml into the current folder; overwrite nothing.

    With --from its source is the folder, the repository or the site; the language is detected in
    its text unless it is given, and the file says what is there and whether that can be judged.

    \b
    Examples:
      jupiterctl domain new notes --from ~/notes
      jupiterctl domain new tickets --from tickets.csv --field body
      jupiterctl domain new handbook --from https://docs.example.org/guide/
      jupiterctl domain new cooking --language es
      jupiterctl domain new rust --language code:rust --from-template
    """  # noqa: D301 - click's mark for lines that keep their ends
    if place and from_template:
        raise UsageError("--from and --from-template exclude each other", "leave one of them out")
    if place:
        _new_of_place(invocation, name, place, language, field)
        return
    if field:
        raise UsageError("--field goes with --from", "add --from FOLDER, or leave it out")
    from jupiterd.ctl.domain.new_domain import write_new_domain

    path = write_new_domain(Path(), name, language, with_every_key=from_template)
    Console.of(invocation).show(
        {"schema": SCHEMA, "domain": name, "file": str(path.resolve())},
        lambda: [
            f"{path} is written: say in it where its text comes from",
            f"check it: jupiterctl domain lint {name}",
            f"start it: jupiterctl cycle start --domain {name}",
        ],
    )


@command.command("schema")
@click.option("--to", metavar="FILE", type=click.Path(path_type=Path), help="Write it there.")
@click.pass_obj
def show_schema(invocation: Invocation, to: Path | None) -> None:
    """Print the JSON Schema of domain files, for editors; asks no daemon.

    \b
    Examples:
      jupiterctl domain schema --to domain.schema.json
      jupiterctl domain schema | jq .properties
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.domain.domain_schema import domain_schema

    text, console = domain_schema(), Console.of(invocation)
    if to is None:
        console.line(text.rstrip("\n"), is_quoted=True)
        return
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{to} can't be written: {error.strerror or error}") from error
    console.show({"schema": SCHEMA, "file": str(to)}, lambda: [f"{to} is written"])


def _new_of_place(invocation: Invocation, name: str, place: str, language: str, field: str) -> None:
    from jupiterd.ctl.domain.new_domain import checked_path, schema_file, written
    from jupiterd.ctl.preflight.domain_of_place import domain_of_place, file_text
    from jupiterd.ctl.preflight.looking_lines import Looking

    path, console = checked_path(Path(), name, language), Console.of(invocation)
    with Looking(console) as looking:
        found = domain_of_place(name, place, language, looking, field)
    written(path, file_text(found, place, schema_file()))
    console.show(
        {
            "schema": SCHEMA,
            "domain": name,
            "file": str(path.resolve()),
            "text": found.to_plain(),
        },
        lambda: [
            *found.lines(),
            f"{path} is written; check it: jupiterctl domain lint {name}",
            *([] if found.is_hopeless else [f"start it: jupiterctl cycle start --domain {name}"]),
        ],
    )


def _mistakes(file: DomainFile) -> list[str]:
    from jupiterd.ctl.sources.domain_name import value_mistakes
    from jupiterd.cycle.domain.domain import domain_mistakes, parse_domain

    if mistakes := domain_mistakes(file.text, str(file.path)):
        return list(mistakes)
    return value_mistakes(file, parse_domain(file.text, str(file.path)))


def _reached(file: DomainFile) -> list["SourceReach"]:
    from jupiterd.ctl.sources.source_reachability import reach
    from jupiterd.cycle.domain.domain import parse_domain

    return reach(parse_domain(file.text, str(file.path)).data_sources)


def _preflight(file: DomainFile, looking: "Looking") -> "Preflight":
    from jupiterd.ctl.preflight.cycle_preflight import Preflight
    from jupiterd.cycle.domain.domain import parse_domain

    return Preflight.of(parse_domain(file.text, str(file.path)), looking)


def _reach_line(source: "SourceReach") -> str:
    found = plain(source.problem) if source.problem else "can be reached"
    return f"source {source.name} ({source.kind}, {plain(source.where)}): {found}"


def _shown_file(file: str) -> str:
    """Return a file's path for people; for Jupiter's own files, a text instead of the path."""
    is_shipped = Path(file).is_relative_to(config_folder())
    return "comes with Jupiter" if is_shipped else plain(file)


def _described(name: str) -> dict[str, Any]:
    """Return the list's row for a domain; if its file has mistakes, the title is the error."""
    from jupiterd.cycle.domain.domain import parse_domain

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
