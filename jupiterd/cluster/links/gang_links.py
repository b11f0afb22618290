"""Which members of a gang can't work together: links that lose packets, or lead nowhere.

Owns the verdict on a link that was tried, and who is left out because of bad ones. Pure. Doesn't
know how a link is tried, or how a gang is formed anew.

A link is tried with many handshakes at once, from both of its ends. Each needs one packet there and
one back, and the kernels answer by themselves: a busy machine loses none.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jupiterd.ids import NodeId

HANDSHAKES: Final = 24
"""From each end. With a third of the packets lost one trial in a hundred sees nothing."""

LOSSY_SHARE: Final = 0.15
"""TCP takes hundreds of times as long for the sum of a step where so many packets are lost."""

Link = frozenset[NodeId]
"""Two nodes."""


@dataclass(frozen=True)
class LinkTrial:
    """A link as one of its ends has tried it."""

    end: NodeId
    other: NodeId
    handshakes: int
    unanswered: int

    @property
    def link(self) -> Link:
        """Return the two nodes, whoever tried."""
        return frozenset((self.end, self.other))


def lossy_links(trials: Iterable[LinkTrial]) -> frozenset[Link]:
    """Return the links that lose too much for a gang, both ends' trials taken together."""
    tried, lost = Counter[Link](), Counter[Link]()
    for trial in trials:
        if trial.end != trial.other and trial.handshakes > 0:
            tried[trial.link] += trial.handshakes
            lost[trial.link] += min(trial.unanswered, trial.handshakes)
    return frozenset(link for link in tried if lost[link] >= LOSSY_SHARE * tried[link])


def hindering(trials: Iterable[LinkTrial], order: Sequence[NodeId], leader: NodeId) -> list[NodeId]:
    """Return who can't go on in a gang whose links were tried, the leader among them perhaps.

    Whom the leader doesn't reach at all it can't lead: then it isn't the one that goes.
    """
    known = list(trials)
    unreached = {t.other for t in known if t.end == leader and t.unanswered >= t.handshakes > 0}
    rest = [node for node in order if node not in unreached]
    return [*unreached.intersection(order), *left_out(lossy_links(known), rest)]


def left_out(
    bad: Collection[Link], order: Sequence[NodeId], stay: Collection[NodeId] = ()
) -> list[NodeId]:
    """Return who must go so that no bad link is left: few, and of two that are alike the later one.

    Args:
        bad: the links that can't be used.
        order: the nodes, those that should rather stay first.
        stay: who stays in any case, whatever the links between them are like.
    """
    gone = [node for node in order if node not in stay and _is_met_badly(node, bad, stay)]
    left = [link for link in bad if link <= set(order) - set(gone) and not link <= set(stay)]
    while left:
        bad_of = Counter(node for link in left for node in link)
        worst = max(bad_of, key=lambda node: (bad_of[node], order.index(node)))
        gone.append(worst)
        left = [link for link in left if worst not in link]
    return gone


def _is_met_badly(node: NodeId, bad: Collection[Link], by: Collection[NodeId]) -> bool:
    return any(node in link and link - {node} <= set(by) for link in bad)
