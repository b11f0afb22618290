"""The list of what `jupiterd service` can do.

Owns the names. A daemon that runs never loads the commands themselves.
"""

import click

NAMES = ("install", "uninstall", "status", "logs")


class ServiceGroup(click.Group):
    """Imports its commands when one of them is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which they are shown."""
        return list(NAMES)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Return a command by its name."""
        if cmd_name not in NAMES:
            return None
        from jupiterd.service.commands import COMMANDS

        return COMMANDS[cmd_name]
