"""Whether newcomers are let in just now, and why.

Owns the answer in words. Doesn't let anybody in (`admission`), and knows no clock: how long a door
stays open is the leader's to say.
"""

from jupiterd.cluster.admission import OPEN_COMMAND
from jupiterd.cluster.state import State

TRUSTS_LAN = "the leader was started with --trust-lan"
OPENED = "somebody opened it"
NEVER_WORKED = "the first cycle that is started closes it"
CLOSED = f"to let machines in, run on any member: {OPEN_COMMAND}"


def door(state: State, *, trusts_lan: bool) -> tuple[bool, str]:
    """Return whether the door is open, with the reason."""
    if trusts_lan:
        return True, TRUSTS_LAN
    if not state.window_open:
        return False, CLOSED
    return True, OPENED if state.has_worked else NEVER_WORKED


def closes_by_itself(state: State) -> bool:
    """Say whether the leader will close the window when its time is up."""
    return state.window_open and state.has_worked
