"""What may befall a gang that trains: something killed, frozen, or cut off; and how that ends.

Owns the strikes and their undoing. Doesn't know what must hold afterwards.
"""

import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.support.daemons.cluster import Document
from tests.support.network import links
from tests.support.network.machines import Machine, Machines

LOSS_PERCENT = 30
SHORT_S = (0.2, 1.5)
"""Nobody is taken for dead so soon."""


class Blow(StrEnum):
    """What is done."""

    KILL_WORKER = "kill worker"
    KILL_FOLLOWER = "kill follower"
    KILL_LEADER = "kill leader"
    CUT_POWER = "cut power"
    """Of a machine: its daemon and its workers at once."""
    FREEZE_WORKER = "freeze worker"
    FREEZE_NODE = "freeze node"
    FREEZE_BRIEFLY = "freeze briefly"
    PULL = "pull cable"
    DEAFEN = "deafen"
    LOSE = "lose packets"
    PART = "part islands"
    """The machines of one hear none of the others."""


CUTS = {Blow.PULL, Blow.DEAFEN, Blow.LOSE, Blow.PART}
"""Both sides may go on, each by itself: what one of them does then doesn't count."""


@dataclass(frozen=True)
class Hit:
    """One strike that has been made."""

    blow: Blow
    struck: Sequence[Machine]
    ends: Sequence[int]
    """Processes that must be gone soon."""
    undo: Callable[[], None]
    lasts_s: float = 0.0
    """It is undone after that; 0: once the others have gone on."""

    def __str__(self) -> str:
        return f"{self.blow} of {', '.join(machine.name for machine in self.struck)}"


def blows_for_one_gang(among: Sequence[Blow]) -> list[Blow]:
    """Return those of these that can befall one gang: it has no islands."""
    return [blow for blow in among if blow is not Blow.PART]


def dealt(count: int, kinds: Sequence[Blow], chance: random.Random) -> list[Blow]:
    """Return so many blows in a random order, of each kind about as many."""
    cards: list[Blow] = []
    while len(cards) < count:
        cards += chance.sample(kinds, len(kinds))
    return cards[:count]


def strike(
    machines: Machines, blow: Blow, view: Document, gang: Sequence[Document], chance: random.Random
) -> Hit:
    """Strike.

    Args:
        machines: all of them.
        blow: what is done.
        view: what somebody says of the cluster.
        gang: the seats of those who train; those of islands say of which.
        chance: chooses who is struck.
    """
    if blow in (Blow.KILL_WORKER, Blow.FREEZE_WORKER):
        seat = chance.choice(gang)
        named = machines.by_id(seat["node"], view).name
        struck = next(each for each in machines.machines if each.name == named)
        return _strike_worker(blow, struck, seat["pid"])
    leader = machines.leader(view)
    if blow is Blow.KILL_LEADER:
        return _kill_daemon(blow, leader)
    if blow is Blow.KILL_FOLLOWER:
        return _kill_daemon(blow, chance.choice(machines.but(leader)))
    if blow is Blow.PART:
        return _part(machines, view, gang, chance)
    struck = chance.choice(machines.machines)
    if blow is Blow.CUT_POWER:
        return _cut_power(struck)
    if blow in CUTS:
        return _cut(machines, blow, struck)
    pids = [struck.pid, *struck.workers()]
    _signal(pids, signal.SIGSTOP)
    lasts_s = chance.uniform(*SHORT_S) if blow is Blow.FREEZE_BRIEFLY else 0.0
    return Hit(blow, [struck], (), lambda: _signal(pids, signal.SIGCONT), lasts_s)


def _strike_worker(blow: Blow, struck: Machine, pid: int) -> Hit:
    _signal([pid], signal.SIGKILL if blow is Blow.KILL_WORKER else signal.SIGSTOP)
    return Hit(blow, [struck], (pid,), lambda: None)


def _kill_daemon(blow: Blow, struck: Machine) -> Hit:
    ends = [struck.pid, *struck.workers()]
    struck.kill()
    return Hit(blow, [struck], ends, struck.start)


def _cut_power(struck: Machine) -> Hit:
    hit = _kill_daemon(Blow.CUT_POWER, struck)
    _signal(hit.ends, signal.SIGKILL)
    return hit


def _part(
    machines: Machines, view: Document, gang: Sequence[Document], chance: random.Random
) -> Hit:
    """Cut one island off from all others."""
    island = chance.choice(sorted({seat["island"] for seat in gang}))
    nodes = {seat["node"] for seat in gang if seat["island"] == island}
    names = {machines.by_id(node, view).name for node in nodes}
    struck = [machine for machine in machines.machines if machine.name in names]
    hosts = [machine.host for machine in struck]
    links.separate(hosts)
    return Hit(Blow.PART, struck, (), lambda: links.heal(hosts))


def _cut(machines: Machines, blow: Blow, struck: Machine) -> Hit:
    if blow is Blow.PULL:
        links.pull(struck.host)
        return Hit(blow, [struck], (), lambda: links.plug(struck.host))
    if blow is Blow.DEAFEN:
        links.deafen(struck.host, [other.host for other in machines.but(struck)])
    else:
        links.lose(struck.host, LOSS_PERCENT)
    return Hit(blow, [struck], (), lambda: links.restore(struck.host))


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
