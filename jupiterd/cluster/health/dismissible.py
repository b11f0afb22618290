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

OF_SOME_VIEWS: Final = frozenset(
    {"behind", "clock-differs", "clone-of-member", "contradiction", "no-effect", "node-suspect"}
)
"""Codes of what some machines see and others don't, be it the leader: the one on which somebody
dismissed it saw it, and knows when it is over."""

MAX_KEY_CHARACTERS: Final = 160
DIGEST_DIGITS: Final = 32


def alarm_key(code: str, about: str, own: NodeId) -> str:
    """Return what tells an alarm from all others of the cluster; own: the machine that says it."""
    whole = f"{code}:{about or own}"
    if len(whole) <= MAX_KEY_CHARACTERS:
        return whole
    return f"{code}:{blake3(about.encode()).hexdigest()[:DIGEST_DIGITS]}"


def reports_its_end(key: str, own: NodeId, *, leads: bool, asked_at: NodeId | None) -> bool:
    """Say whether it is this machine that tells the others when an alarm is over.

    asked_at: the machine on which it was dismissed; None where that is no member any more
    """
    code, _, about = key.partition(":")
    if code in OF_ONE_VIEW:
        return about == own
    if code in OF_SOME_VIEWS and asked_at is not None:
        return asked_at == own
    return leads
