"""`jupiterctl cluster merge`: unites two clusters that both have work.

Owns the lines and the confirmation of a merge's plan. Doesn't know what is recorded.
"""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.formats import plain
from jupiterd.ids import short
from jupiterd.token_input import token_from

NOTHING_DONE = "nothing was changed; add --yes to merge them"
BLOCKED = "nothing was changed, and nothing can be while that is in the way"

Document = Mapping[str, Any]


@click.command(cls=GlobalOptionsCommand)
@click.argument("cluster")
@click.option(
    "--token", metavar="FILE|-", help="Where a join token of CLUSTER is, while it is closed."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be united.")
@click.pass_obj
def merge(invocation: Invocation, cluster: str, token: str | None, *, dry_run: bool) -> None:
    """Let this cluster become part of CLUSTER, with all its nodes and all its work.

    CLUSTER is the name, the id or the beginning of the id of another cluster in sight. It goes on;
    people there agree by `jupiterctl cluster open`, or by a join token. Without a terminal and
    without --yes only the plan is shown.

    \b
    Examples:
      jupiterctl cluster merge attic --dry-run
      jupiterctl cluster merge 3f2a91bc --yes
      jupiterctl cluster merge 3f2a91bc --token -
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import MergeCluster

    console = Console.of(invocation)
    secret = "" if token is None else token_from(token, "--token")
    command = MergeCluster(cluster=cluster, token=secret)
    if not invocation.is_confirmed or dry_run:
        plan = order(invocation.state_dir, replace(command, dry_run=True))
        if dry_run or plan["obstacles"] or not sys.stdin.isatty():
            end = BLOCKED if plan["obstacles"] else NOTHING_DONE
            console.show(plan, lambda: [*plan_lines(plan), "", end])
            return
        for line in plan_lines(plan):
            console.notice(line)
        console.require_consent(_question(plan), invocation)
    done = order(invocation.state_dir, command)
    console.show(done, lambda: [_merged(done)])


def plan_lines(plan: Document) -> list[str]:
    """Return lines about what would be united, then the notes and the obstacles."""
    lines = [
        *_cluster_lines("becomes part of it", plan["absorbed"]),
        *_cluster_lines("goes on", plan["into"]),
    ]
    lines += [f"note: {plain(note)}" for note in plan["notes"]]
    for found in plan["obstacles"]:
        lines += [f"in the way: {plain(found['title'])}", f"  hint: {plain(found['hint'])}"]
    return lines


def _cluster_lines(what: str, brief: Document) -> list[str]:
    nodes = ", ".join(f"{plain(name)} ({short(node)})" for node, name in brief["nodes"].items())
    cycles = [
        f"    cycle {plain(short(cycle['id']))} on {plain(cycle['domain'])}: rounds "
        f"{cycle['rounds']}{', running' if cycle['running'] else ''}"
        for cycle in brief["cycles"]
    ]
    return [f"{_title(brief)} {what}", f"    nodes: {nodes}", *cycles]


def _title(brief: Document) -> str:
    return f"{plain(brief['name'])} ({plain(short(brief['id']))})"


def _question(plan: Document) -> str:
    return f"Let {_title(plan['absorbed'])} become part of {_title(plan['into'])}?"


def _merged(done: Document) -> str:
    return (
        f"{_title(done['absorbed'])} is part of {_title(done['into'])} now; "
        "its nodes move over by themselves"
    )
