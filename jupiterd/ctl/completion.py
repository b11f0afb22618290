"""`jupiterctl completion`: prints a script that makes a shell complete commands and options."""

import click

from jupiterd.ctl.commands import GlobalOptionsCommand

PROGRAM = "jupiterctl"
VARIABLE = "_JUPITERCTL_COMPLETE"
"""The variable in which a shell's script requests completions, as click names it."""


@click.command(cls=GlobalOptionsCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print what SHELL needs to complete commands, options and names; asks no daemon.

    \b
    Examples:
      echo 'eval "$(jupiterctl completion bash)"' >> ~/.bashrc
      echo 'eval "$(jupiterctl completion zsh)"' >> ~/.zshrc
      jupiterctl completion fish > ~/.config/fish/completions/jupiterctl.fish
    """  # noqa: D301 - click's mark for lines that keep their ends
    from click.shell_completion import get_completion_class

    from jupiterd.ctl.main import cli

    kind = get_completion_class(shell)
    if kind is None:  # click knows these three
        raise click.UsageError(f"{shell} isn't known")
    click.echo(kind(cli, {}, PROGRAM, VARIABLE).source())
