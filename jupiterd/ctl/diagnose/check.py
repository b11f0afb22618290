"""`jupiterctl check ...`: measures network paths and allreduce between machines."""

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import ExitCode
from jupiterd.formats import plain

if TYPE_CHECKING:
    from jupiterd.ids import NodeId

ONE_NODE_S: Final = 150.0
"""Seconds. A path usually takes two, a bad one ten, and a node has at most eight paths."""

SYNC_S: Final = 110.0


@click.group(cls=Group)
def command() -> None:
    """Measure what no status can show."""


@command.command("links")
@click.argument("node", required=False)
@click.pass_obj
def check_links(invocation: Invocation, node: str | None) -> None:
    """Measure the paths from this machine to NODE, or between all machines that are alive.

    Of each path the round trip time is measured, then its bandwidth in and out, for about a second
    each; a round that trains meanwhile is slower for so long. A star marks the path in use; the
    choice of it uses these figures from then on. Two other machines are measured by one of them.

    \b
    Examples:
      jupiterctl check links
      jupiterctl check links mac-mini -o json | jq '.paths[].out_mbit_per_s'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.output.link_rows import hints, link_lines

    console, status = Console.of(invocation), ask(invocation.state_dir, "status")
    names = _meant(status, node)
    paths, failed = _measured(invocation, console, names, must_answer=node is not None)
    others: list[dict[str, Any]] = []
    if node is None:
        others, more = _between(invocation, console, names)
        failed += more
    document = {
        "schema": SCHEMA,
        "from": status["node"],
        "paths": paths,
        "others": others,
        "hints": [*hints(paths), *failed],
    }
    console.show(document, lambda: link_lines(document))


@command.command("sync")
@click.option(
    "--nodes",
    default="",
    metavar="all|N|NAME,...",
    help="The machines that take part; those that would train by default.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "torch", "mlx"]),
    default="auto",
    help="What they add up with; as a cycle would choose by default.",
)
@click.pass_obj
def check_sync(invocation: Invocation, nodes: str, engine: str) -> int:
    """Let the machines that would train add up a known vector, as they do in every step.

    Each rank says whether its sum is right, how long a small one took, and how much a large one
    carried; a round that trains meanwhile is slower for so long. The exit status is 8 where a sum
    is wrong or a machine doesn't answer.

    \b
    Examples:
      jupiterctl check sync
      jupiterctl check sync --nodes all --engine mlx -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.output.allreduce_rows import is_healthy, sync_lines
    from jupiterd.protocol.commands.check_commands import CheckAllreduce

    console = Console.of(invocation)
    command = CheckAllreduce(nodes=nodes, engine=engine)
    document = order(invocation.state_dir, command, SYNC_S)
    console.show(document, lambda: sync_lines(document))
    return ExitCode.OK if is_healthy(document["nodes"]) else ExitCode.UNHEALTHY


def _measured(
    invocation: Invocation, console: Console, names: Mapping["NodeId", str], *, must_answer: bool
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the measured paths to these nodes, and lines about nodes that weren't measured."""
    from jupiterd.ctl.orders import order
    from jupiterd.errors import PeerUnreachableError
    from jupiterd.protocol.commands.check_commands import CheckLinks

    paths: list[dict[str, Any]] = []
    failed: list[str] = []
    for node, name in names.items():
        if console.is_table:
            console.notice(f"measuring the paths to {plain(name)}")
        try:
            found = order(invocation.state_dir, CheckLinks(node=node), ONE_NODE_S)
        except PeerUnreachableError as error:
            if must_answer:
                raise
            failed.append(f"{plain(name)} wasn't measured: {error.message}")
            continue
        paths += [{"node": node, "name": name, **path} for path in found["paths"]]
    return paths, failed


def _between(
    invocation: Invocation, console: Console, names: Mapping["NodeId", str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the measured paths between all pairs of nodes, and lines about failed pairs."""
    from jupiterd.ctl.orders import order
    from jupiterd.errors import JupiterError
    from jupiterd.protocol.commands.check_commands import CheckLinks

    paths: list[dict[str, Any]] = []
    failed: list[str] = []
    for (asker, here), (target, there) in combinations(names.items(), 2):
        between = f"{plain(here)} and {plain(there)}"
        if console.is_table:
            console.notice(f"measuring the paths between {between}")
        command = CheckLinks(node=target, asker=asker)
        try:
            found = order(invocation.state_dir, command, ONE_NODE_S)
        except JupiterError as error:
            failed.append(f"between {between} nothing was measured: {error.message}")
            continue
        start = {"id": asker, "name": here}
        paths += [{"from": start, "node": target, "name": there, **path} for path in found["paths"]]
    return paths, failed


def _meant(status: Mapping[str, Any], wanted: str | None) -> "dict[NodeId, str]":
    """Return node id -> name of the nodes to measure."""
    from jupiterd.cluster.values.node_names import find_node
    from jupiterd.errors import NotFoundError, UsageError
    from jupiterd.ids import NodeId

    own = status["node"]["id"]
    seen = {NodeId(str(node["id"])): node for node in status.get("nodes", [])}
    names = {node: str(row["name"]) for node, row in seen.items() if row["state"] != "pending"}
    if wanted is not None:
        found = find_node(names, wanted)
        if found == own:
            raise UsageError("that is this machine", "name another one; jupiterctl node list")
        return {found: names[found]}
    others = {n: name for n, name in names.items() if n != own and seen[n]["state"] == "alive"}
    if not others:
        raise NotFoundError("no other machine is alive", "jupiterctl node list shows who is here")
    return others
