"""`jupiterctl launch ...`: runs a script, or lists, reads and stops known launches.

Owns that distinction: a first word that isn't a verb begins a command to run. Doesn't know what the
verbs do.
"""

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.launch import known
from jupiterd.ctl.launch.command import command as run

RUN = "run"


class LaunchGroup(Group):
    """A click group that adds the verb `run` to a command line without a verb."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line; without a verb, it runs a script."""
        has_verb = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if has_verb else [RUN, *args])


@click.group(cls=LaunchGroup, context_settings={"allow_interspersed_args": False})
def command() -> None:
    """Run a script written for torchrun or MLX, as it is; list, read and stop what runs.

    Without one of the verbs, what follows is run: see jupiterctl launch run --help.

    \b
    Examples:
      jupiterctl launch --per-node 2 -- python train.py --epochs 3
      jupiterctl launch --nodes all --detach -- python train.py
      jupiterctl launch list
    """  # noqa: D301 - click's mark for lines that keep their ends


command.add_command(run, RUN)
command.add_command(known.list_launches)
command.add_command(known.logs)
command.add_command(known.stop)
