"""`jupiterctl cluster ...`: the cluster, its admission of machines, and its branches."""

from collections.abc import Mapping
from typing import Any, cast

import click

from jupiterd.ctl.cluster.branches import branches, switch
from jupiterd.ctl.cluster.cluster_leave import leave
from jupiterd.ctl.cluster.cluster_merge import merge
from jupiterd.ctl.commands import Group
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.output.admission_lines import door_line, token_table
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.formats import counted, plain

_FORMATTED_APART = frozenset({"open", "door", "tokens"})


@click.group(cls=Group)
def command() -> None:
    """The machines that belong together, and whether others may join."""


command.add_command(branches)
command.add_command(switch)
command.add_command(merge)
command.add_command(leave)


@command.command()
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Show the cluster of the local daemon: whether its door is open, and its join tokens.

    \b
    Examples:
      jupiterctl cluster show
      jupiterctl cluster show -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    cluster = ask(invocation.state_dir, "status").get("cluster") or {}
    document = {"schema": SCHEMA, "cluster": cluster}
    Console.of(invocation).show(document, lambda: _cluster_lines(cluster))


@command.command("open")
@dry_run
@click.pass_obj
def open_window(invocation: Invocation) -> None:
    """Let new machines in for ten minutes; before the first work, until it begins.

    \b
    Examples:
      jupiterctl cluster open
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import OpenCluster

    done = order(invocation.state_dir, OpenCluster())
    Console.of(invocation).show(done, lambda: [_opened(done)])


@command.command("close")
@dry_run
@click.pass_obj
def close_window(invocation: Invocation) -> None:
    """Let no new machines in.

    \b
    Examples:
      jupiterctl cluster close
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import CloseCluster

    done = order(invocation.state_dir, CloseCluster())
    Console.of(invocation).show(done, lambda: ["no new machine may join any more"])


@command.command()
@click.argument("name")
@dry_run
@click.pass_obj
def rename(invocation: Invocation, name: str) -> None:
    """Give the cluster another NAME; it is a label, and its id stays.

    \b
    Examples:
      jupiterctl cluster rename attic
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import RenameCluster

    done = order(invocation.state_dir, RenameCluster(name=name))
    Console.of(invocation).show(done, lambda: [f"the cluster is called {done['name']} now"])


@command.command()
@click.option("--uses", default=1, show_default=True, help="How many machines; 0 for any number.")
@click.option("--withdraw", metavar="ID", help="Let this token let in nobody any more.")
@dry_run
@click.pass_obj
def token(invocation: Invocation, uses: int, withdraw: str | None) -> None:
    """Make a join token: it lets a machine in while the cluster is closed.

    It is good for a day. Whoever has it can join; pass it on as you would a password.

    \b
    Examples:
      jupiterctl cluster token
      jupiterctl cluster token --uses 5
      jupiterctl cluster token --withdraw 1f2e3d4c
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import IssueToken, WithdrawToken

    console = Console.of(invocation)
    if withdraw:
        done = order(invocation.state_dir, WithdrawToken(token=withdraw))
        console.show(done, lambda: [f"token {done['id']} lets in nobody any more"])
        return
    issued = order(invocation.state_dir, IssueToken(uses=uses))
    console.show(issued, lambda: _how_to_join(issued))


def _cluster_lines(cluster: Mapping[str, Any]) -> list[str]:
    fields = {name: value for name, value in cluster.items() if name not in _FORMATTED_APART}
    if cluster.get("door"):
        fields["door"] = door_line(cluster["door"])
    width = max(map(len, fields), default=0)
    lines = [f"{name:<{width}}  {plain(value)}" for name, value in fields.items()]
    tokens = token_table(cluster.get("tokens") or [])
    return [*lines, "", *tokens] if tokens else lines


def _how_to_join(issued: Mapping[str, object]) -> list[str]:
    whom = {0: "any number of machines", 1: "one machine"}.get(
        cast("int", issued["uses"]), f"{issued['uses']} machines"
    )
    take_back = f"jupiterctl cluster token --withdraw {str(issued['id'])[:8]}"
    return [
        "run on the new machine:",
        "  jupiterd --join -",
        "and paste this token where it asks for it (nobody sees it in the list of processes):",
        f"  {issued['token']}",
        f"good for {whom}, for a day; take it back with: {take_back}",
    ]


def _opened(done: Mapping[str, Any]) -> str:
    left_s = done.get("closes_in_s")
    lasting = (
        "until its first work begins"
        if left_s is None
        else f"for {counted(round(left_s / 60), 'minute')}"
    )
    return f"new machines may join {lasting}"
