"""What goes wrong with machines, links and disks.

Owns how each trouble is made and for how long it lasts. Doesn't know how often (`profiles`), nor
what must hold all the same.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jupiterd.cluster.membership.presence import GangChanged
from jupiterd.ids import NodeId
from tests.simulation.trouble.forgery import backdate, forge, forge_clones_entry, forge_twins
from tests.simulation.trouble.network import FAIR

if TYPE_CHECKING:
    from tests.simulation.node.machine import Machine
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

MAX_BACKUPS = 3
LEADERS = 0.4


def make_trouble(world: "World") -> None:
    """Make one of the profile's troubles."""
    weights = world.profile.troubles
    (name,) = world.rng.choices(list(weights), list(weights.values()))
    TROUBLES[name](world)


def mend_everything(world: "World") -> None:
    """End every trouble: only time is needed from now on."""
    world.is_healed = True
    fair = (weather for weather in world.profile.weathers if weather.is_fair)
    world.network.change(next(fair, FAIR), ())
    for machine in world.machines.values():
        machine.disk.is_full = False
        machine.disk.writes_left = None
        machine.wake()
        machine.start()
    world.disturb("everything is mended")


def _any(world: "World") -> "Machine":
    """Choose a machine; one that leads more often than chance has it, for it has more to lose."""
    machines = list(world.machines.values())
    leading = [m for m in machines if m.process is not None and m.process.leader_term is not None]
    return world.rng.choice(leading if leading and world.rng.random() < LEADERS else machines)


def _power_cut(world: "World") -> None:
    machine = _any(world)
    machine.refuses = world.rng.random() < 0.5
    machine.go_out()
    world.at(world.rng.uniform(0.2, 9.0), machine.start)


def _cut_at_write(world: "World") -> None:
    """The power goes out in the middle of one of the next writes, done or not."""
    disk = _any(world).disk
    disk.writes_left = world.rng.randrange(1, 4)
    disk.is_torn = world.rng.random() < 0.5


def _sleep_for(world: "World", least_s: float, most_s: float) -> None:
    machine = _any(world)
    machine.sleep()
    world.at(world.rng.uniform(least_s, most_s), machine.wake)


def _partition(world: "World") -> None:
    nodes = list(world.machines)
    world.rng.shuffle(nodes)
    at = world.rng.randrange(len(nodes))
    _split(world, nodes[:at], nodes[at:])


def _partition_between_clones(world: "World") -> None:
    """Those that have one key are in different groups."""
    ones = {pair[0].place for pair in world.clones.pairs()}
    others = {pair[1].place for pair in world.clones.pairs()}
    for node in world.machines:
        if node not in ones | others:
            world.rng.choice((ones, others)).add(node)
    _split(world, sorted(ones), sorted(others))


def _split(world: "World", one: list[NodeId], other: list[NodeId]) -> None:
    cuts = {(a, b) for a in one for b in other} | {(b, a) for a in one for b in other}
    world.network.change(cuts=cuts)
    world.disturb(f"split {_names(one)} | {_names(other)}")


def _cut_link(world: "World", *, both_ways: bool) -> None:
    if len(world.machines) < 2:
        return
    one, other = world.rng.sample(list(world.machines), 2)
    cuts = {(one, other), (other, one)} if both_ways else {(one, other)}
    world.network.change(cuts=world.network.cuts | cuts)
    world.disturb(f"cut {one[:2]} {'<' if both_ways else ''}-> {other[:2]}")


def _cut_between_clones(world: "World") -> None:
    """Those that have one key can't meet, and everybody else hears both."""
    for one, other in world.clones.pairs():
        cuts = {(one.place, other.place), (other.place, one.place)}
        world.network.change(cuts=cuts)
        world.disturb(f"cut {one.place[:8]} <-> {other.place[:8]}")


def _mend_links(world: "World") -> None:
    world.network.change(cuts=())
    world.disturb("links are mended")


def _change_weather(world: "World") -> None:
    weather = world.rng.choice(world.profile.weathers)
    world.network.change(weather)
    world.disturb(f"{weather}")


def _fill_disk(world: "World") -> None:
    machine = _any(world)
    machine.disk.is_full = True
    world.disturb(f"{machine.node[:2]} has no room")


def _empty_disk(world: "World") -> None:
    for machine in world.machines.values():
        machine.disk.is_full = False
    world.disturb("every disk has room")


def _back_up(world: "World") -> None:
    machine = _any(world)
    disk = machine.disk
    if machine.node in world.outside:
        return  # its disk holds nothing: whoever puts that back has a new machine
    disk.backups = [*disk.backups, disk.content][-MAX_BACKUPS:]


def _restore(world: "World") -> None:
    """Go out, and come back with an older disk."""
    machine = _any(world)
    if machine.disk.backups:
        machine.go_out()
        machine.disk.content = world.rng.choice(machine.disk.backups)
        world.witness.restored(machine, machine.disk.content)
        world.tell(f"{machine.node[:2]} has an older disk")
        world.at(world.rng.uniform(0.2, 4.0), machine.start)


def _copy(world: "World", *, is_running: bool) -> None:
    copy = world.clones.copy_running if is_running else world.clones.copy_disk
    copy(_any(world))


def _goodbye(world: "World") -> None:
    machine = _any(world)

    def stop(process: "Process") -> None:
        process.say_goodbye()
        world.at(0.0, machine.go_out)
        world.at(world.rng.uniform(1.0, 6.0), machine.start)

    machine.deliver(stop)


def _hand_over(world: "World") -> None:
    """The weather clears up and the leader stops: what it wrote isn't everywhere yet."""
    world.network.change(FAIR)
    _goodbye(world)


def _bury(world: "World") -> None:
    """One machine in a seed never comes back, where others are left."""
    machine = _any(world)
    if len(world.machines) > 2 and not any(m.is_buried for m in world.machines.values()):
        machine.go_out()
        machine.is_buried = True
        world.tell(f"{machine.node[:2]} never comes back")


def _gang(world: "World") -> None:
    runs = world.rng.random() < 0.5
    _any(world).deliver(lambda process: process.tell(GangChanged(runs)))


def _compact(world: "World") -> None:
    _any(world).deliver(lambda process: process.replica.compact())


def _names(nodes: list[NodeId]) -> str:
    return " ".join(node[:2] for node in nodes)


TROUBLES: "Mapping[str, Callable[[World], object]]" = {
    "power_cut": _power_cut,
    "cut_at_write": _cut_at_write,
    "doze": lambda world: _sleep_for(world, 0.5, 3.0),
    "sleep": lambda world: _sleep_for(world, 5.0, 14.0),
    "hibernate": lambda world: _sleep_for(world, 18.0, 24.0),
    "partition": _partition,
    "cut_link": lambda world: _cut_link(world, both_ways=True),
    "cut_one_way": lambda world: _cut_link(world, both_ways=False),
    "mend_links": _mend_links,
    "change_weather": _change_weather,
    "fill_disk": _fill_disk,
    "empty_disk": _empty_disk,
    "back_up": _back_up,
    "restore": _restore,
    "copy_disk": lambda world: _copy(world, is_running=False),
    "partition_between_clones": _partition_between_clones,
    "cut_between_clones": _cut_between_clones,
    "copy_running": lambda world: _copy(world, is_running=True),
    "goodbye": _goodbye,
    "hand_over": _hand_over,
    "bury": _bury,
    "gang": _gang,
    "compact": _compact,
    "forge": forge,
    "backdate": backdate,
    "forge_twins": forge_twins,
    "forge_clones_entry": forge_clones_entry,
}
