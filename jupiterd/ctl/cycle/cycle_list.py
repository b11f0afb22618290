"""`jupiterctl cycle list`: lists every cycle that this cluster knows.

Owns the command and its columns. Doesn't know what a cycle does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.formats import plain, table
from jupiterd.ids import short

HEADERS = ("ID", "DOMAIN", "STATE", "ROUNDS", "VERDICT", "BITS/BYTE", "OWN TEXT")

Row = Mapping[str, Any]


@click.command("list", cls=GlobalOptionsCommand)
@click.pass_obj
def list_(invocation: Invocation) -> None:
    """List all cycles, the newest first.

    OWN TEXT is the share of the newest round's synthetic text that the cycle's own student wrote.
    With -o jsonl each cycle is a line.

    \b
    Examples:
      jupiterctl cycle list
      jupiterctl cycle list -o json | jq '.cycles[] | select(.state == "paused")'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    document = ask(invocation.state_dir, "cycles")
    Console.of(invocation).show_list(document, "cycles", lambda: cycle_rows(document["cycles"]))


def cycle_rows(rows: Sequence[Row]) -> list[str]:
    """Return the table of cycles, or a line that says that there are none."""
    if not rows:
        return ["no cycle has been started"]
    return table(HEADERS, [_cells(row) for row in rows])


def _cells(row: Row) -> list[str]:
    val_bpb, share = row.get("val_bpb"), row.get("self_hosting")
    return [
        short(str(row.get("id", ""))),
        plain(row.get("domain")),
        plain(row.get("state")),
        f"{plain(row.get('rounds_done'))} of {plain(row.get('rounds'))}",
        plain(row.get("verdict") or "-"),
        "-" if val_bpb is None else f"{val_bpb:.4f}",
        "-" if share is None else f"{share:.0%}",
    ]
