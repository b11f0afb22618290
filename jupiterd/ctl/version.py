"""`jupiterctl version`: prints the version of this program."""

import platform

import click

import jupiterd
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA


@click.command(cls=GlobalOptionsCommand)
@click.pass_obj
def command(invocation: Invocation) -> None:
    """Print the version of this program; asks no daemon.

    \b
    Examples:
      jupiterctl version
      jupiterctl version -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    python = platform.python_version()
    document = {"schema": SCHEMA, "version": jupiterd.__version__, "python": python}
    Console.of(invocation).show(
        document, lambda: [f"jupiterctl {jupiterd.__version__} (Python {python})"]
    )
