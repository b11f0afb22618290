"""`jupiterctl cycle report`: writes a page about one cycle.

Owns the command and the file. Doesn't know the content of the page (`report`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.atomic_file import whole_file
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.formats import size
from jupiterd.ids import short

READING_S = 600.0
"""Seconds to wait for samples from other nodes."""


@click.command("report", cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@click.option(
    "--to",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write it; DOMAIN-ID.html here.",
)
@click.pass_obj
def report(invocation: Invocation, cycle: str | None, to: Path | None) -> None:
    """Write a page about a cycle: curves, phases, verdicts, samples and what its models write.

    CYCLE is a domain, an id or the beginning of one; without it the newest is meant. The page is
    one file that needs nothing else and no network. It holds some of the text that was trained on,
    and beginnings of held-out text: think before you publish it.

    \b
    Examples:
      jupiterctl cycle report
      jupiterctl cycle report 3f2a91bc --to report.html
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.report.page import report_page
    from jupiterd.ctl.report.samples import choose

    noun = f"report/{cycle}" if cycle else "report"
    document = ask_over_grpc(invocation.state_dir, noun, READING_S)["report"]
    page = report_page(document, choose(document["samples"]))
    shown = document["cycle"]
    path = to or Path(f"{shown['domain']}-{short(shown['id'])}.html")
    written = _write(path, page)
    Console.of(invocation).show(
        {"schema": SCHEMA, "cycle": shown["id"], "file": str(path), "bytes": written},
        lambda: [f"{path}: {size(written)}; open it in a browser", *_talk_line(document)],
    )


def _talk_line(report: Mapping[str, Any]) -> list[str]:
    """Return how to talk to the cycle's newest model; nothing if it has none."""
    rounds = report.get("rounds") or ()
    if not rounds:
        return []
    name = f"{short(str(report['cycle']['id']))}/{rounds[-1]['round']}"
    return [f"talk to its newest model: jupiterctl model chat {name}"]


def _write(path: Path, page: str) -> int:
    """Write the page atomically, over an older one; return its size in bytes."""
    data = page.encode("utf-8", "replace")
    with whole_file(path) as draft:
        draft.write_bytes(data)
    return len(data)
