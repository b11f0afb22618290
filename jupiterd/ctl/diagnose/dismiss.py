"""`jupiterctl dismiss`: ends alarms that the user has seen."""

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.output.console import Console
from jupiterd.formats import plain


@click.command(cls=GlobalOptionsCommand)
@click.argument("names", nargs=-1, metavar="[WHAT]...")
@dry_run
@click.pass_obj
def command(invocation: Invocation, names: tuple[str, ...]) -> None:
    """End alarms that you have seen: health no longer shows them, on all machines.

    WHAT is the code of an alarm, as status shows it, or the machine, cycle or run that it is about.
    Without it everything ends that has happened: what failed, who knocked, what was refused. What
    lasts (a machine that is gone, a disk that is nearly full) must be named. An alarm comes back
    when it happens again, or begins again after it was over.

    \b
    Examples:
      jupiterctl dismiss
      jupiterctl dismiss gang-knocked
      jupiterctl dismiss attic             # all that is said of that machine
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.alarm_commands import DismissAlarms

    done = order(invocation.state_dir, DismissAlarms(names=tuple(names)))
    lines = [f"dismissed {plain(row['code'])}: {plain(row['title'])}" for row in done["dismissed"]]
    Console.of(invocation).show(done, lambda: lines)
