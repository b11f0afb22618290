"""jupiterctl's subclasses of click's commands and groups.

Owns importing a command's module only when it runs, and suggestions for names that don't exist.
Doesn't know which commands there are.
"""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from jupiterd.ctl.invocation import global_options
from jupiterd.ctl.options.values import complete_values

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class GlobalOptionsCommand(click.Command):
    """A command that takes the global options after its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        complete_values(self.params)
        self.params.extend(global_options())


class Group(click.Group):
    """A noun with several verbs; each takes the global options."""

    command_class = GlobalOptionsCommand


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it runs."""

    def __init__(self, *args: Any, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        """Store `lazy`: name of a command -> (its module with a `command`, a line of help)."""
        super().__init__(*args, **kwargs)
        self._lazy = lazy
        self.params.extend(global_options())

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which they are shown."""
        return list(self._lazy)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in self._lazy:
            return None
        return importlib.import_module(self._lazy[cmd_name][0]).command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; raise click.NoSuchCommand, with similar names, if there is none."""
        if args[0] not in self._lazy and not args[0].startswith("-"):
            raise click.NoSuchCommand(args[0], possibilities=self._lazy, ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return completions without importing any command, because a shell waits for them."""
        from click.shell_completion import CompletionItem

        fitting = [(n, line) for n, (_, line) in self._lazy.items() if n.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=line) for name, line in fitting), *options]

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._lazy.items()])
