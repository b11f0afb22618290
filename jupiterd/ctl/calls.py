"""Single calls to the daemon, without a stream: a request for a document, or a command.

Owns the choice between the question socket and gRPC, and the event loop of a gRPC call. Imports
gRPC only for such a call. Doesn't know what is requested.
"""

from pathlib import Path

from jupiterd.client.question import answer_to
from jupiterd.protocol.commands.command import Command as DaemonCommand
from jupiterd.protocol.local_query import ANSWER_TIMEOUT_S, Document


def ask(state_dir: Path, noun: str) -> Document:
    """Return the daemon's document about `noun`; raise as `ask_over_grpc` does."""
    found = answer_to(noun, state_dir)
    return ask_over_grpc(state_dir, noun) if found is None else found


def ask_over_grpc(state_dir: Path, noun: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Document:
    """Return a document over gRPC: it may take long, or the daemon has no question socket.

    Raises:
        DaemonUnreachableError: no daemon answers.
    """
    import asyncio

    from jupiterd.client.channel import ControlChannel

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.status(noun, timeout_s)

    return asyncio.run(call())


def ordered(state_dir: Path, command: DaemonCommand, timeout_s: float | None = None) -> Document:
    """Send a command to the daemon, also with --dry-run; return its result."""
    import asyncio

    from jupiterd.client.channel import EXECUTE_TIMEOUT_S, ControlChannel

    async def call() -> Document:
        async with ControlChannel(state_dir) as channel:
            return await channel.execute(
                command.VERB, command.to_plain(), timeout_s or EXECUTE_TIMEOUT_S
            )

    return asyncio.run(call())
