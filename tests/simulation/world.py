"""One simulated cluster: its time, its machines and the queue of what will happen.

Owns virtual time, the seed's random source and the trace. Doesn't know what machines do or what
must hold.
"""

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable
from itertools import count

from blake3 import blake3

from jupiterd.cluster.facts.facts import TokenIssued
from jupiterd.ids import NodeId
from tests.simulation.invariants.checks import Checks
from tests.simulation.invariants.door import Door
from tests.simulation.invariants.witness import Witness
from tests.simulation.node.machine import Machine
from tests.simulation.node.newcomers import Newcomer
from tests.simulation.profiles import Profile
from tests.simulation.trouble.clones import Clones
from tests.simulation.trouble.network import Network

TOLD = 50
"""How many of the last events a failing seed shows."""


class World:
    """Runs machines in virtual time."""

    def __init__(self, seed: int, profile: Profile) -> None:
        self.seed = seed
        self.profile = profile
        self.rng = random.Random(seed)
        self.now = 0.0
        self.disturbed_at = 0.0
        """When anything but time last got in the way of anybody."""
        self.is_healed = False
        """No more troubles: whatever is dead stays dead, everything else works."""
        self.recent: deque[str] = deque(maxlen=TOLD)
        self.met: Counter[str] = Counter()
        """What has come about, and how often: seeds that never meet a case prove nothing of it."""
        self.trace = blake3()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = count()
        self._numbers = count()
        self.network = Network(self)
        self.witness = Witness(self)
        self.clones = Clones(self)
        self.door = Door(self)
        self.checks = Checks(self)
        self.machines: dict[NodeId, Machine] = {}
        """By their places: nodes, and what copies are called."""
        self.founders: frozenset[NodeId] = frozenset()
        """Who is trusted from the beginning."""
        self.newcomers: dict[NodeId, Newcomer] = {}
        self.tokens: dict[str, TokenIssued] = {}
        """Every token that was ever recorded: people carry them about."""
        self.outside: list[NodeId] = []
        """Machines that have never been started: nobody has admitted them yet."""

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        """Let something happen `delay_s` from now."""
        heapq.heappush(self._queue, (self.now + delay_s, next(self._count), action))

    def run(self, seconds: float) -> None:
        """Let everything happen that is due within so many seconds."""
        until = self.now + seconds
        queue, acting, copied = self._queue, self.checks.acting, self.clones.places
        while queue and queue[0][0] <= until:
            self.now, _, action = heapq.heappop(queue)
            action()
            if len(acting) > 1:
                self.checks.check_two_leaders()
            if copied:
                self.clones.check()
        self.now = until

    def next_number(self) -> str:
        """Return a number that nobody has had."""
        return str(next(self._numbers))

    def tell(self, what: str) -> None:
        """Note an event: for the trace, and for whoever looks into a failing seed."""
        line = f"{self.now:9.3f} {what}"
        self.recent.append(line)
        self.trace.update(line.encode())

    def disturb(self, what: str) -> None:
        """Note that something got in the way."""
        self.disturbed_at = self.now
        self.tell(what)

    def quiet_s(self) -> float:
        """Return for how long nothing has got in anybody's way; 0 in bad weather."""
        return min(self.now - self.disturbed_at, self.network.fair_s())

    def living(self) -> list[Machine]:
        """Return the machines that run and are awake."""
        return [machine for machine in self.machines.values() if machine.is_awake]

    def fresh_name(self, digits: int) -> str:
        """Return hex digits that nobody has had."""
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"
