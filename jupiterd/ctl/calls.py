"""One question or command to the daemon, for commands that need no stream.

Owns which way it goes, and the event loop of a call over gRPC, which is imported for that alone.
Doesn't know what is asked.
"""

from pathlib import Path

from jupiterd.client.question import answer_to
from jupiterd.protocol.commands.command import Command as DaemonCommand
from jupiterd.protocol.local_query import ANSWER_TIMEOUT_S, Document


def ask(state_dir: Path, noun: str) -> Document:
    """Return the daemon's document about `noun`."""
    found = answer_to(noun, state_dir)
    return ask_over_grpc(state_dir, noun) if found is None else found


def ask_over_grpc(state_dir: Path, noun: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Document:
    """Ask for what may take long, or as daemons before the question socket are asked.

    It finds out why none answers, too.
    """
    import asyncio

    from jupiterd.client.channel import ControlChannel

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.status(noun, timeout_s)

    return asyncio.run(call())


def ordered(state_dir: Path, command: DaemonCommand, timeout_s: float | None = None) -> Document:
    """Have the daemon do what changes nothing, with --dry-run as well; return what came of it."""
    import asyncio

    from jupiterd.client.channel import EXECUTE_TIMEOUT_S, ControlChannel

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.execute(
                command.VERB, command.to_plain(), timeout_s or EXECUTE_TIMEOUT_S
            )

    return asyncio.run(call())
