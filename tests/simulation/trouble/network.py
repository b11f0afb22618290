"""The network between machines: loss, delay, duplicates, reordering, cuts in either direction.

Owns what arrives where and when. Doesn't know what messages say.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from jupiterd.ids import NodeId

if TYPE_CHECKING:
    from tests.simulation.node.machine import Machine
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

REFUSAL_S = 0.002


@dataclass(frozen=True)
class Weather:
    """How the network treats messages that no cut stops."""

    loss: float = 0.0
    delay_s: float = 0.02
    """Each message takes up to twice as long, so they overtake each other."""
    doubled: float = 0.0

    @property
    def is_fair(self) -> bool:
        """Say whether every message arrives, and before the next heartbeat is sent."""
        return self.loss == 0.0 and self.delay_s <= 0.15


FAIR = Weather()


class Network:
    """Carries messages between machines."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.weather = world.profile.weathers[0]
        self.cuts: frozenset[tuple[NodeId, NodeId]] = frozenset()
        """(source, target) of the directions that carry nothing."""
        self._changed_at = 0.0

    def where(self, node: NodeId) -> NodeId:
        """Return the machine that a message to a node comes to."""
        return self._world.clones.where(node)

    def send(
        self,
        source: NodeId,
        target: NodeId,
        arrive: "Callable[[Process], None]",
        refused: "Callable[[Process], None] | None" = None,
    ) -> None:
        """Let a message arrive once, twice or never; `refused` comes back from a dead machine."""
        rng = self._world.rng
        copies = 1 if rng.random() >= self.weather.doubled else 2
        for _ in range(copies):
            if rng.random() >= self.weather.loss:
                delay_s = rng.random() * 2 * self.weather.delay_s
                self._world.at(delay_s, partial(self._deliver, source, target, arrive, refused))

    def post(self, source: NodeId, target: NodeId, arrive: "Callable[[], None]") -> None:
        """Let something happen at the target's door, whether or not a process runs there."""
        rng = self._world.rng
        if rng.random() >= self.weather.loss:
            delay_s = rng.random() * 2 * self.weather.delay_s
            self._world.at(delay_s, lambda: None if (source, target) in self.cuts else arrive())

    def is_open(self, one: NodeId, other: NodeId) -> bool:
        """Say whether both directions carry."""
        return (one, other) not in self.cuts and (other, one) not in self.cuts

    def change(
        self,
        weather: Weather | None = None,
        cuts: Iterable[tuple[NodeId, NodeId]] | None = None,
    ) -> None:
        """Let another weather or other cuts hold from now on."""
        self._changed_at = self._world.now
        self.weather = self.weather if weather is None else weather
        self.cuts = self.cuts if cuts is None else frozenset(cuts)

    def fair_s(self) -> float:
        """Return how long the weather has been fair and no cut has come or gone."""
        return self._world.now - self._changed_at if self.weather.is_fair else 0.0

    def groups(self, machines: "Iterable[Machine]") -> "list[list[Machine]]":
        """Return who can reach each other by any number of steps."""
        waiting, found = list(machines), []
        while waiting:
            group = [waiting.pop()]
            for member in group:
                near = [other for other in waiting if self.is_open(member.place, other.place)]
                group += near
                waiting = [other for other in waiting if other not in near]
            found.append(group)
        return found

    def is_complete(self, group: "Iterable[Machine]") -> bool:
        """Say whether everybody reaches everybody directly."""
        inside = {machine.place for machine in group}
        return not any(source in inside and target in inside for source, target in self.cuts)

    def is_apart(self, group: "Iterable[Machine]") -> bool:
        """Say whether nothing passes between a group and the rest, not in one direction either."""
        inside = {machine.place for machine in group}
        return all(
            (target, source) in self.cuts
            for source, target in self.cuts
            if (source in inside) != (target in inside)
        )

    def _deliver(
        self,
        source: NodeId,
        target: NodeId,
        arrive: "Callable[[Process], None]",
        refused: "Callable[[Process], None] | None",
    ) -> None:
        if (source, target) in self.cuts:
            return
        machine = self._world.machines.get(target)
        if machine is None:
            return  # it was thrown away
        if machine.process is not None:
            machine.deliver(arrive)
        elif refused is not None and machine.refuses and self.is_open(source, target):
            answer_to = self._world.machines.get(source)
            if answer_to is not None:
                self._world.at(REFUSAL_S, lambda: answer_to.deliver(refused))
