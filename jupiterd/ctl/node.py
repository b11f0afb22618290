"""`jupiterctl node ...`: the machines."""

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.console import SCHEMA, Console
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.node_rows import node_table
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
    Console.of(invocation).show(document, lambda: node_table(status))


@command.command("remove")
@click.argument("node")
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
    from jupiterd.cluster.node_names import find_node
    from jupiterd.ctl.calls import ask, order
    from jupiterd.ids import NodeId

    nodes = ask(invocation.state_dir, "status").get("nodes", [])
    names = {NodeId(str(seen["id"])): str(seen["name"]) for seen in nodes}
    found = find_node(names, node)
    console = Console.of(invocation)
    console.require_consent(
        f"Remove {plain(names[found])} ({found[:8]}) from the cluster?", invocation
    )
    done = order(invocation.state_dir, "node.remove", {"node": found})
    console.show(done, lambda: [f"{done['name']} is no longer a member"])


@command.command("role")
@click.argument("node")
@click.argument("role", type=click.Choice(["generator", "trainer", "hybrid", "idle", "auto"]))
@click.pass_obj
def pin_role(invocation: Invocation, node: str, role: str) -> None:
    """Fix what NODE does; auto leaves it to the leader again.

    \b
    Examples:
      jupiterctl node role mac-mini generator
      jupiterctl node role mac-mini auto
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import order

    done = order(invocation.state_dir, "node.role", {"node": node, "role": role})
    Console.of(invocation).show(done, lambda: [_pinned(str(done["name"]), role)])


def _pinned(name: str, role: str) -> str:
    return (
        f"the leader chooses {name}'s role"
        if role == "auto"
        else f"{name} has the role {role} from the next phase on"
    )
