"""`jupiterctl node ...`: the machines of the cluster."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.options.wait_options import check_wait, wait_options
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.node_rows import contradiction_lines, node_table
from jupiterd.document_schema import SCHEMA
from jupiterd.formats import plain


@click.group(cls=Group)
def command() -> None:
    """The machines of the cluster."""


@command.command("list")
@click.pass_obj
def list_nodes(invocation: Invocation) -> None:
    """List the nodes with role, state and hardware; a star marks the leader.

    \b
    Examples:
      jupiterctl node list
      jupiterctl node list -o json | jq -r '.nodes[].name'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    status = ask(invocation.state_dir, "status")
    document = {"schema": SCHEMA, "nodes": status.get("nodes", [])}
    lines = [*node_table(status), *contradiction_lines(status)]
    Console.of(invocation).show_list(document, "nodes", lambda: lines)


@command.command("show")
@click.argument("node")
@click.pass_obj
def show_node(invocation: Invocation, node: str) -> None:
    """Show NODE closely: its last ten minutes, versions, work, links and the end of its log.

    NODE is a name, an id, or the beginning of one. What isn't known is N/A.

    \b
    Examples:
      jupiterctl node show mac-mini
      jupiterctl node show 8c5f35a3 -o json | jq '.recent.cpu_percent'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.cluster.text.node_page import page
    from jupiterd.ctl.calls import ask

    console = Console.of(invocation)
    document = ask(invocation.state_dir, f"node/{node}")
    console.show(document, lambda: page(document, draws=console.can_draw))


@command.command("approve")
@click.argument("node")
@click.option("--words", metavar="WORDS", help="The four words that the new machine shows.")
@dry_run
@click.pass_obj
def approve_node(invocation: Invocation, node: str, words: str | None) -> None:
    """Let NODE in, which waits outside the closed cluster.

    NODE is a name, an id, or the beginning of one; `jupiterctl status` on the new machine and
    `jupiterctl node list` here show the same four words, unless somebody stands between the two.
    With --yes nothing is compared.

    \b
    Examples:
      jupiterctl node approve new-laptop
      jupiterctl node approve new-laptop --words "radar canvas tiny plug"
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import ApproveNode

    console = Console.of(invocation)
    if not (words or invocation.is_confirmed or invocation.is_dry_run):
        node, name, words = _seen_waiting(ask(invocation.state_dir, "status"), node)
        console.require_comparison(f"Does {plain(name)} ({node[:8]}) show the words: {words}?")
    done = order(invocation.state_dir, ApproveNode(node=node, words=words or ""))
    console.show(done, lambda: [f"{plain(done['name'])} is let in"])


@command.command("trust")
@click.argument("node")
@dry_run
@click.pass_obj
def trust_node(invocation: Invocation, node: str) -> None:
    """Say yes to NODE, which walked in through the open door.

    NODE is a name, an id, or the beginning of one. Until somebody has said so once, on a member
    that is trusted, NODE may start, watch and stop work; it may not approve, remove, merge, purge,
    promote, or bring scripts. The machine that founded the cluster is trusted from the start.

    \b
    Examples:
      jupiterctl node trust new-laptop
      jupiterctl node trust 8c5f35a3 --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.cluster.values.node_names import find_node
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.orders import order
    from jupiterd.ids import NodeId
    from jupiterd.protocol.commands.member_commands import TrustNode

    nodes = ask(invocation.state_dir, "status").get("nodes", [])
    members = [seen for seen in nodes if seen.get("state") != "pending"]
    names = {NodeId(str(seen["id"])): str(seen["name"]) for seen in members}
    found = find_node(names, node)
    console = Console.of(invocation)
    console.require_consent(
        f"Is {plain(names[found])} ({found[:8]}) a machine that you trust?", invocation
    )
    done = order(invocation.state_dir, TrustNode(node=found))
    console.show(done, lambda: [f"{plain(done['name'])} is trusted"])


@command.command("remove")
@click.argument("node")
@dry_run
@click.pass_obj
def remove_node(invocation: Invocation, node: str) -> None:
    """Take NODE's membership away, everywhere and at once.

    NODE is a name, an id, or the beginning of one. The machine can join again only with a new
    state folder. Work that it was doing is done by others.

    \b
    Examples:
      jupiterctl node remove old-laptop
      jupiterctl node remove 8c5f35a3 --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.cluster.values.node_names import find_node
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.orders import order
    from jupiterd.ids import NodeId
    from jupiterd.protocol.commands.member_commands import RemoveNode

    nodes = ask(invocation.state_dir, "status").get("nodes", [])
    names = {NodeId(str(seen["id"])): str(seen["name"]) for seen in nodes}
    found = find_node(names, node)
    console = Console.of(invocation)
    console.require_consent(
        f"Remove {plain(names[found])} ({found[:8]}) from the cluster?", invocation
    )
    done = order(invocation.state_dir, RemoveNode(node=found))
    console.show(done, lambda: [f"{plain(done['name'])} is no longer a member"])


@command.command("role")
@click.argument("node")
@click.argument("role", type=click.Choice(["generator", "trainer", "hybrid", "idle", "auto"]))
@dry_run
@click.pass_obj
def pin_role(invocation: Invocation, node: str, role: str) -> None:
    """Fix what NODE does; auto leaves it to the leader again.

    \b
    Examples:
      jupiterctl node role mac-mini generator
      jupiterctl node role mac-mini auto
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import PinRole

    done = order(invocation.state_dir, PinRole(node=node, role=role))
    Console.of(invocation).show(done, lambda: [_pinned(plain(done["name"]), role)])


@command.command("drain")
@click.argument("node")
@wait_options("Return once it has finished what it does now.")
@dry_run
@click.pass_obj
def drain_node(invocation: Invocation, node: str, *, wait: bool, timeout: float | None) -> None:
    """Give NODE no new work; it stays a member.

    A training goes on without it after the running step; what else it does it finishes. Where
    nobody else can go on, that waits until it is resumed: `jupiterctl node resume NODE`. The same
    as `jupiterctl node role NODE idle`.

    \b
    Examples:
      jupiterctl node drain old-laptop
      jupiterctl node drain old-laptop --wait --timeout 10m && echo it may be switched off
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.waiting.node_idle import wait_until_idle
    from jupiterd.protocol.commands.member_commands import PinRole

    check_wait(wait=wait, timeout=timeout)
    done = order(invocation.state_dir, PinRole(node=node, role="idle"))
    if wait:
        wait_until_idle(invocation.state_dir, str(done["node"]), timeout)
    Console.of(invocation).show(done, lambda: _drained(done, is_over=wait))


@command.command("resume")
@click.argument("node")
@dry_run
@click.pass_obj
def resume_node(invocation: Invocation, node: str) -> None:
    """Let NODE work again after a drain; the leader chooses its role.

    \b
    Examples:
      jupiterctl node resume old-laptop
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import PinRole

    done = order(invocation.state_dir, PinRole(node=node, role="auto"))
    Console.of(invocation).show(done, lambda: [_pinned(plain(done["name"]), "auto")])


def _seen_waiting(status: Mapping[str, Any], wanted: str) -> tuple[str, str, str]:
    """Return the id, the name and the words of the waiting machine that `wanted` names."""
    from jupiterd.cluster.values.node_names import find_waiting
    from jupiterd.ids import NodeId

    nodes = status.get("nodes", [])
    waiting = {NodeId(str(seen["id"])): seen for seen in nodes if seen.get("state") == "pending"}
    found = find_waiting({node: str(seen["name"]) for node, seen in waiting.items()}, wanted)
    return found, str(waiting[found]["name"]), plain(waiting[found]["words"])


def _drained(done: Mapping[str, Any], *, is_over: bool) -> list[str]:
    name = plain(done["name"])
    leaves = (
        "and does nothing any more" if is_over else "and leaves what trains after the running step"
    )
    alone = ["nobody else can work just now: what runs waits until then"]
    return [
        f"{name} gets no new work, {leaves}",
        f"end that with: jupiterctl node resume {quote(name)}",
        *(alone if done.get("workers_left") == 0 else []),
    ]


def _pinned(name: str, role: str) -> str:
    return (
        f"the leader chooses {name}'s role"
        if role == "auto"
        else f"{name} has the role {role} from the next phase on"
    )
