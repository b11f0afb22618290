"""`jupiterctl node ...`: the machines."""

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.console import SCHEMA, Console
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.node_rows import node_table


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
