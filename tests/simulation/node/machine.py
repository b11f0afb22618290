"""One machine: its power, its sleep, its clock and its disk.

Owns what happens to a process from outside: it starts, goes out, sleeps with its messages piling
up, and wakes. Doesn't know what the process does.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jupiterd.ids import NodeId
from tests.simulation.node.disk import Disk, PowerCut
from tests.simulation.node.process import Process

if TYPE_CHECKING:
    from tests.simulation.world import World

MAX_BACKLOG = 500
"""What the kernel keeps for a process that doesn't read."""

RESTART_S = (0.2, 4.0)
"""How long a machine is out after a power cut in a write."""


class Machine:
    """A node's hardware; its process is another one after each start."""

    def __init__(
        self, world: "World", node: NodeId, disk: Disk, place: NodeId | None = None
    ) -> None:
        self._world = world
        self.node = node
        self.place = place or node
        """Which machine it is: another one than `node`, where two have one key."""
        self.disk = disk
        self.rate = world.rng.uniform(*world.profile.rates)
        """Seconds of its clock for each second of the world."""
        self._clock_ahead_s = world.rng.uniform(0.0, 1000.0)
        self.stability = world.rng.randrange(3)
        self.process: Process | None = None
        self.refuses = True
        """Whether its system says that nobody listens, or nothing at all, while it is out."""
        self.is_latecomer = False
        """It wasn't a member at first, and the others may learn of it late."""
        self.is_buried = False
        """It never starts again."""
        self.is_asleep = False
        self.up_since = 0.0
        """When it last started or woke."""
        self.down_since = 0.0
        self.slept_local_s = 0.0
        """How long the last sleep was by its own clock, which counts it."""
        self._backlog: list[Callable[[Process], None]] = []

    def beside(self, place: NodeId, disk: Disk) -> "Machine":
        """Return another machine with the same key."""
        return Machine(self._world, self.node, disk, place)

    @property
    def is_awake(self) -> bool:
        """Say whether its process runs."""
        return self.process is not None and not self.is_asleep

    @property
    def is_silent(self) -> bool:
        """Say whether its process knows that another machine has its key."""
        return self.process is not None and self.process.clones.is_seen

    def clock_s(self) -> float:
        """Return its own time, which counts sleep and goes faster or slower than the world's."""
        return self._clock_ahead_s + self._world.now * self.rate

    def start(self) -> None:
        """Start the daemon from what is on disk."""
        if self.process is not None or self.is_buried or self.node in self._world.outside:
            return
        self.up_since = self._world.now
        self._world.disturb(f"{self.place[:2]} starts")
        try:
            Process.begin(self._world, self)
        except PowerCut:
            self._lose_power()

    def go_out(self) -> None:
        """Lose everything that isn't on disk."""
        if self.process is not None:
            self.process = None
            self.is_asleep = False
            self._world.checks.note_acting(self)
            self._backlog.clear()
            self.down_since = self._world.now
            self._world.disturb(f"{self.node[:2]} goes out")

    def sleep(self) -> None:
        """Stand still, the network card still listening."""
        if self.is_awake:
            self.is_asleep = True
            self.down_since = self._world.now
            self._world.disturb(f"{self.node[:2]} sleeps")

    def wake(self) -> None:
        """Handle what has piled up, in any order, timers among it."""
        if self.process is None or not self.is_asleep:
            return
        self.is_asleep = False
        self.up_since = self._world.now
        self.slept_local_s = (self._world.now - self.down_since) * self.rate
        self._world.disturb(f"{self.node[:2]} wakes after {self.slept_local_s:.1f} s")
        self._world.witness.woke(self)
        backlog, self._backlog = self._backlog, []
        self._world.rng.shuffle(backlog)
        for action in backlog:
            self.deliver(action)

    def deliver(self, action: Callable[[Process], None]) -> None:
        """Let the process handle something, now or when it wakes."""
        process = self.process
        if process is None:
            return
        if self.is_asleep:
            if len(self._backlog) < MAX_BACKLOG:
                self._backlog.append(action)
            return
        try:
            action(process)
        except PowerCut:
            self._lose_power()

    def after(self, process: Process, local_s: float, action: Callable[[Process], None]) -> None:
        """Let the same process do something when its own clock has gone on so far."""

        def due() -> None:
            if self.process is process:
                self._queue_timer(action)

        self._world.at(local_s / self.rate, due)

    def _queue_timer(self, action: Callable[[Process], None]) -> None:
        if self.is_asleep:
            self._backlog.append(action)  # its own timers are never dropped
        else:
            self.deliver(action)

    def _lose_power(self) -> None:
        """Go out in the middle of a write, and start again in a while."""
        self._world.tell(f"{self.node[:2]} was writing")
        self._world.met["the power goes out in a write"] += 1
        self.go_out()
        self._world.at(self._world.rng.uniform(*RESTART_S), self.start)
