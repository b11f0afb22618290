"""How a change is asked of the daemon.

Owns the call and the words about its end. Doesn't know what is changed, or who was asked before.
"""

from pathlib import Path

from jupiter_tui.action import Action
from jupiterd.client.channel import ControlChannel
from jupiterd.errors import JupiterError


async def carried_out(state_dir: Path, action: Action) -> tuple[str, bool]:
    """Let the daemon do it; return what to say, and whether it was done."""
    try:
        async with ControlChannel(state_dir) as channel:
            await channel.execute(action.verb, action.arguments)
    except JupiterError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        return f"{error.message}{hint}", False
    return action.done, True
