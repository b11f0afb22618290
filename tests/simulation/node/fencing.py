"""Orders of leaders, and who obeys them.

Real: `fencing` of the core. Imitates `daemon.fencing` and `daemon.followed`: an order of
somebody whom the node doesn't follow yet waits a second for that; what is obeyed is on disk before,
and the leader that is followed is asked for a higher term where its own is too low to be obeyed.
"""

from typing import TYPE_CHECKING

from jupiterd.cluster.membership.fencing import Obeyed, is_followed
from jupiterd.cluster.membership.presence import TermSeen
from jupiterd.errors import DiskFullError, RefusedError
from jupiterd.ids import NodeId
from tests.simulation.node.recording import cycle_of

if TYPE_CHECKING:
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

ORDER_EVERY_S = 1.0
HEARD_WITHIN_S = 1.0
"""An order waits so long for the heartbeat of the leader that it comes from."""
LOOK_S = 0.25


class Fencing:
    """What one process has obeyed."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._highest = Obeyed.parse(process.machine.disk.content.obeyed)

    def obey(
        self, leader: NodeId, term: int, attempt: int, patience_s: float = HEARD_WITHIN_S
    ) -> None:
        """Do what a leader wants, unless it is over or there is no room to remember it."""
        process, election = self._process, self._process.presence.election
        if not process.answers(leader):
            return
        if is_followed(leader, term, election.leader, election.term):
            self._obey(leader, term, attempt)
        elif term < election.term:
            process.world.met["an old order is refused"] += 1
        elif patience_s > 0.0:
            left_s = patience_s - LOOK_S
            process.wait(LOOK_S, lambda own: own.fencing.obey(leader, term, attempt, left_s))

    def _obey(self, leader: NodeId, term: int, attempt: int) -> None:
        process = self._process
        try:
            wanted = self._highest.after(leader, term, attempt)
            if wanted != self._highest:
                process.machine.disk.save_obeyed(str(wanted))
        except RefusedError:
            self._ask_for_term(leader, term)
            return
        except DiskFullError:
            return
        self._highest = wanted
        process.world.witness.obeyed(process, wanted)

    def obeys(self, leader: NodeId, term: int) -> bool:
        """Say whether the last order obeyed was of this leader in this term."""
        return (self._highest.leader, self._highest.term) == (leader, term)

    def _ask_for_term(self, leader: NodeId, term: int) -> None:
        process, least = self._process, self._highest.least_term(leader)
        is_rival = term == self._highest.term < least
        process.world.met[f"{'a rival' if is_rival else 'an old'} order is refused"] += 1
        if term < least and process.presence.election.leader == leader:
            process.tell(TermSeen(least))


def keep_ordering(world: "World") -> None:
    """Let whoever leads order something now and then."""
    if not world.is_healed:
        for machine in world.machines.values():
            machine.deliver(order)
        world.at(world.rng.expovariate(1.0 / ORDER_EVERY_S), lambda: keep_ordering(world))


def order(process: "Process") -> None:
    """Order something of everybody, where this node leads."""
    process.check_awake()
    others = process.others()
    if process.leader_term is None or not process.leader_term.is_open or not others:
        return
    cycle, term = cycle_of(process), process.leader_term.term
    attempt = max((opened.attempt for opened in cycle.open_attempts), default=0)
    for node in others:
        process.world.network.send(
            process.place,
            process.world.network.where(node),
            lambda peer: peer.fencing.obey(process.node, term, attempt),
        )
