"""Which cluster a node belongs in, and who may come in.

Owns the decisions when two clusters meet and when a stranger asks. Doesn't know keys, certificates
or how anybody was found.

A fresh machine is a cluster of one with a blank ledger, so joining is merging: the blank one
dissolves.

    ours | theirs    blank                        with work
    blank            the larger stays, then the   join theirs if it is open (or knows us),
                     smaller id                   else wait and say what opens it
    with work        they come to us              apart
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from jupiterd.cluster.facts.facts import WALKED_IN
from jupiterd.cluster.ledger.state import State
from jupiterd.ids import ClusterId, NodeId, short

MAX_MEMBERS = 64
"""Every node beats to every other one: more would need another way of talking."""

OPEN_COMMAND = "jupiterctl cluster open"
TRUSTS_LAN = "whoever is in its network is trusted"


@dataclass(frozen=True)
class Summary:
    """What a cluster tells its members of itself, and a stranger a part of."""

    cluster: ClusterId
    label: str
    blank: bool
    open: bool
    leader: NodeId | None
    """None where there is none, or a stranger isn't told."""
    term: int
    members: int
    """Zero where a stranger isn't told."""
    absorbed: frozenset[ClusterId] = frozenset()
    """Clusters that have become part of it."""

    def for_stranger(self, cluster: ClusterId | None) -> "Summary":
        """Return what a node of `cluster`, which is no member, needs in order to decide.

        How large it is counts between two that have no work yet, and whether theirs is a part of
        it only to them. Whoever just looks round learns its id, its label and whether it is open.
        """
        members = self.members if self.blank else 0
        absorbed = self.absorbed & frozenset([cluster])
        return replace(self, leader=None, term=0, members=members, absorbed=absorbed)

    @property
    def title(self) -> str:
        """How people know it."""
        return f"{self.label or 'cluster'} ({short(self.cluster)})"


class Meeting(StrEnum):
    """What comes of a meeting, as our side sees it."""

    SAME = "same"
    """We are in one cluster."""
    JOIN_THEIRS = "join-theirs"
    """Ours dissolves: ask to be let in."""
    AWAIT_THEIRS = "await-theirs"
    """Theirs dissolves into ours: they will ask."""
    PENDING = "pending"
    """We would join, and they are closed."""
    APART = "apart"
    """Both have work of their own."""


class Admission(StrEnum):
    """What the leader says to a node that asks to be let in."""

    ADMITTED = "admitted"
    PENDING = "pending"
    """Not now; opening the cluster would let it in."""
    REFUSED = "refused"


def meet(ours: Summary, theirs: Summary, known_member: bool) -> tuple[Meeting, str]:  # noqa: FBT001
    """Decide between two clusters.

    `known_member` says that one of the two nodes is in the other's roster already.
    """
    if ours.cluster == theirs.cluster:
        return Meeting.SAME, f"both are in {ours.title}"
    if not ours.blank and not theirs.blank:
        return Meeting.APART, f"{theirs.title} has work of its own, and so has {ours.title}"
    if _stays(ours, theirs):
        hint = "" if ours.open else f"; it is closed until somebody runs: {OPEN_COMMAND}"
        return Meeting.AWAIT_THEIRS, f"{theirs.title} dissolves into {ours.title}{hint}"
    if theirs.open or known_member:
        return Meeting.JOIN_THEIRS, f"{ours.title} is blank and dissolves into {theirs.title}"
    return Meeting.PENDING, _closed(theirs)


def choose(ours: Summary, sightings: Iterable[Summary]) -> tuple[ClusterId | None, str]:
    """Return the cluster to join among those in sight, or None where ours is kept for now."""
    others = {seen.cluster: seen for seen in sightings if seen.cluster != ours.cluster}
    if not ours.blank:
        return None, f"{ours.title} has work of its own"
    working = sorted((seen for seen in others.values() if not seen.blank), key=_precedence)
    if len(working) > 1:
        titles = " and ".join(seen.title for seen in working)
        return None, f"{titles} are both in sight: stop one of them, then this node joins the other"
    if working:
        return working[0].cluster, f"{working[0].title} has work"
    best = min(others.values(), key=_precedence, default=ours)
    if _stays(ours, best):
        return None, f"nothing takes precedence over {ours.title}"
    return best.cluster, f"{best.title} takes precedence among blank clusters"


def admit(
    state: State,
    is_open: bool,  # noqa: FBT001
    node: NodeId,
    token: str = "",
    apart: str = "",
    trusts_lan: bool = False,  # noqa: FBT001, FBT002
) -> tuple[Admission, str]:
    """Decide, as the leader, whether `node` may become a member.

    `trusts_lan` says that people trust everybody in this network, which is a yes to each newcomer;
    `token` is the id of a join token that counts and whose secret the node has proved to know;
    `apart` says why its version can't be in this cluster, and is empty where it can.
    """
    if node in state.members:
        return Admission.ADMITTED, "it is a member already"
    if obstacle := _obstacle(state, node, apart):
        return Admission.REFUSED, obstacle
    if token:
        return Admission.ADMITTED, f"it has the join token {short(token)}"
    if is_open:
        return Admission.ADMITTED, TRUSTS_LAN if trusts_lan else WALKED_IN
    return Admission.PENDING, f"the cluster is closed; run on any member: {OPEN_COMMAND}"


def _obstacle(state: State, node: NodeId, apart: str) -> str:
    """Return why a node that is no member can't become one, whatever it has; or nothing."""
    if state.roster.was_removed(node) or node in state.barred:
        return "it was removed from the cluster"
    if len(state.members) >= MAX_MEMBERS:
        return f"the cluster has {MAX_MEMBERS} members, and that is the limit"
    return apart


def _stays(ours: Summary, theirs: Summary) -> bool:
    return _precedence(ours) <= _precedence(theirs)


def _precedence(summary: Summary) -> tuple[bool, int, ClusterId]:
    return summary.blank, -summary.members, summary.cluster


def _closed(theirs: Summary) -> str:
    return f"{theirs.title} is closed; run on any of its members: {OPEN_COMMAND}"
