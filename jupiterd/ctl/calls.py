"""One request for a document, or one command, to the daemon, for commands that need no stream.

Owns the choice between the question socket and gRPC, and the event loop of a call over gRPC, which
is imported for that alone. Doesn't know what is requested.
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
    """Return a document that may take long, or that of a daemon older than the question socket.

    Raises:
        DaemonUnreachableError: no daemon answers; the error says why.
    """
    import asyncio

    from jupiterd.client.channel import ControlChannel

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.status(noun, timeout_s)

    return asyncio.run(call())


def ordered(state_dir: Path, command: DaemonCommand, timeout_s: float | None = None) -> Document:
    """Send a command to the daemon, with --dry-run as well; return its result."""
    import asyncio

    from jupiterd.client.channel import EXECUTE_TIMEOUT_S, ControlChannel

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.execute(
                command.VERB, command.to_plain(), timeout_s or EXECUTE_TIMEOUT_S
            )

    return asyncio.run(call())
