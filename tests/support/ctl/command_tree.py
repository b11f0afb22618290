"""All commands of jupiterctl, as click knows them."""

from collections.abc import Iterator

import click


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command there is with its name, but for groups of them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command
