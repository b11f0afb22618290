"""Which alarms may be dismissed, and what each is called in the ledger.

Pure. Owns the two lists. Doesn't know when an alarm holds (`cluster.health`, `cluster.alerts`).
"""

from typing import Final

from blake3 import blake3

from jupiterd.ids import NodeId

LASTING: Final = frozenset(
    {"no-leader", "removed", "clone", "pending-node", "sought", "node-waits"}
)
"""Codes of what nobody can dismiss: this machine is in no cluster that could take note of it, or
somebody asks a question, which has an answer."""

OF_ONE_VIEW: Final = frozenset({
    "disk", "link-out", "trusts-lan", "alone", "alone-locally", "pending-locally", "no-engine",
    "tcp-silent", "tcp-blocked", "peer-unreached",
})  # fmt: skip
"""Codes of what each machine says of its own view: it alone knows when that is over."""

OF_A_FILE: Final = frozenset({"contradiction", "no-effect"})
"""Codes of what only those say who have a cluster file: whoever said it knows when it is over."""

MAX_KEY_CHARACTERS: Final = 160
DIGEST_DIGITS: Final = 32


def alarm_key(code: str, about: str, own: NodeId) -> str:
    """Return what tells an alarm from all others of the cluster; own: the machine that says it."""
    whole = f"{code}:{about or own}"
    if len(whole) <= MAX_KEY_CHARACTERS:
        return whole
    return f"{code}:{blake3(about.encode()).hexdigest()[:DIGEST_DIGITS]}"


def tells_its_end(key: str, own: NodeId, *, leads: bool, has_held: bool) -> bool:
    """Say whether it is this machine that tells the others when an alarm is over.

    has_held: it has seen it hold since it was started
    """
    code, _, about = key.partition(":")
    if code in OF_ONE_VIEW:
        return about == own
    return has_held if code in OF_A_FILE else leads
