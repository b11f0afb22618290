"""`jupiterctl cluster leave`: this machine founds its own cluster, and takes all work along.

Owns the lines of the plan, and the question. Doesn't move the work: the daemon does.
"""

import sys
from collections.abc import Mapping
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.formats import counted, plain
from jupiterd.ids import short

NOTHING_DONE = "nothing was changed; add --yes to leave it"


@click.command(cls=GlobalOptionsCommand)
@click.option("--dry-run", is_flag=True, help="Only say what would come of it.")
@click.pass_obj
def leave(invocation: Invocation, *, dry_run: bool) -> None:
    """Take this machine, with all work, into a cluster of its own.

    For machines whose cluster has nobody left who may say yes: this one founds a new cluster, is
    trusted there, and knows every cycle, model and data set. Nothing changes on the others. Run it
    on each of yours, then unite them: `jupiterctl cluster merge`.

    \b
    Examples:
      jupiterctl cluster leave --dry-run
      jupiterctl cluster leave --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.member_commands import LeaveCluster

    console = Console.of(invocation)
    if not invocation.is_confirmed or dry_run:
        plan = order(invocation.state_dir, LeaveCluster(dry_run=True))
        if dry_run or not sys.stdin.isatty():
            console.show(plan, lambda: [*_plan_lines(plan), "", NOTHING_DONE])
            return
        for line in _plan_lines(plan):
            console.notice(line)
        console.require_consent(f"Leave {_title(plan['left'])}?", invocation)
    done = order(invocation.state_dir, LeaveCluster())
    console.show(done, lambda: _left(done))


def _plan_lines(plan: Mapping[str, Any]) -> list[str]:
    others = ", ".join(map(plain, plan["left"]["nodes"]))
    return [
        f"{_title(plan['left'])} goes on without this machine: {others}",
        f"this machine founds a cluster of its own and takes {_work(plan)} along",
    ]


def _left(done: Mapping[str, Any]) -> list[str]:
    founded, work = done["founded"], _work(done)
    return [
        f"this machine has left {_title(done['left'])}; {_title(founded)} is its own, with {work}",
        "do the same on each of your other machines, then unite them:",
        "  jupiterctl cluster token    here",
        f"  jupiterctl cluster merge {short(founded['id'])} --token -    on each of them",
    ]


def _work(document: Mapping[str, Any]) -> str:
    return counted(document["cycles"], "piece of work", "pieces of work")


def _title(cluster: Mapping[str, Any]) -> str:
    return f"{plain(cluster['name'] or 'cluster')} ({plain(short(cluster['id']))})"
