"""What must hold once everything is mended.

Owns the last invariants of a seed: one leader, one view, one ledger, one line, nothing lost, and
the same result in whatever order histories are merged.
"""

from itertools import permutations, product
from typing import TYPE_CHECKING

from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.errors import JupiterError
from tests.simulation.invariants.checks import content_of, line_of, true_head
from tests.simulation.invariants.in_force import what_is_not_in_force
from tests.simulation.invariants.violation import Violation
from tests.simulation.node.disk import Content
from tests.simulation.node.fencing import order
from tests.simulation.node.recording import work
from tests.simulation.node.replica import CLUSTER, load
from tests.simulation.node.signing import add_verified
from tests.simulation.trouble.troubles import mend_everything

if TYPE_CHECKING:
    from tests.simulation.node.process import Process
    from tests.simulation.world import World

HEALED_S = 30.0
LOOK_EVERY_S = 1.0
FULL_EVERY = 8
"""Each eighth seed goes on to the end of the time for healing even if all is well before."""

SPREAD_S = 2.0
"""An entry, or a heartbeat of a newcomer, has come to everybody by then."""

OBEYED_S = 10.0
"""An order or two, a heartbeat of a slow clock that tells the term wanted, and orders in that."""

COPIED_S = 25.0
"""A call that was lost before the healing holds up the next one for ten seconds of a slow clock."""


def heal(world: "World") -> None:
    """Mend everything and see to it that the cluster is whole again in time."""
    before = [machine.disk.content for machine in world.machines.values()]
    mend_everything(world)
    ends_at = world.now + HEALED_S
    in_order = 0
    while world.now < ends_at and (in_order < 2 or world.seed % FULL_EVERY == 0):
        world.run(LOOK_EVERY_S)
        in_order = 0 if what_is_wrong(world) else in_order + 1
    _let_news_spread(world, ends_at)
    _must(what_is_wrong(world))
    _part_clones(world)
    _check_that_it_works(world)
    _check_that_leaders_are_obeyed(world)
    _must(what_is_lost(world))
    for process in (process for camp in camps(world) for process in camp):
        world.door.check_the_removed(process)
        world.door.check_the_trusted(process)
        world.door.check_the_backdated(process)
    _check_merging(world, before)


def _let_news_spread(world: "World", ends_at: float) -> None:
    """What was written a moment ago, or who moved in then, isn't known everywhere yet.

    Newcomers are let in at any time, but they are few: no cluster is waited for without end.
    """
    while what_is_wrong(world) and world.now < min(_settled_at(world, ends_at), ends_at + HEALED_S):
        world.run(LOOK_EVERY_S)


def _settled_at(world: "World", ends_at: float) -> float:
    """Return when everybody has heard of the last entry and of whoever moved in last."""
    started_at = max(machine.up_since for machine in world.machines.values())
    return max(ends_at, max(started_at, world.witness.appended_at) + SPREAD_S)


def _part_clones(world: "World") -> None:
    """Whoever has a key twice deletes one of them and starts the other one's daemon anew."""
    for pair in world.clones.pairs():
        gone, kept = world.rng.sample(pair, 2)
        _must("" if kept.is_silent and gone.is_silent else f"{kept.node[:2]} is there twice")
        world.clones.part(gone)
        kept.go_out()
        kept.start()
        ends_at = world.now + HEALED_S
        while world.now < ends_at and what_is_wrong(world):
            world.run(LOOK_EVERY_S)
        _must(what_is_wrong(world))


def what_is_wrong(world: "World") -> str:
    """Say what keeps the cluster from being one; empty where nothing does."""
    found = camps(world)
    inside = (_what_is_wrong_in(camp) for camp in found)
    return next(filter(None, inside), "") or _who_does_not_know(world, found)


def camps(world: "World") -> "list[list[Process]]":
    """Return the members that run: one cluster, unless some have removed each other.

    Who removes each other in separate groups stays apart: neither takes anything from the other.
    Who shares its key with another machine takes no part.
    """
    running = [machine.process for machine in world.machines.values() if machine.process]
    waiting = [process for process in running if not (process.is_removed or process.clones.is_seen)]
    found: list[list[Process]] = []
    while waiting:
        camp = [waiting.pop()]
        for member in camp:
            near = [other for other in waiting if _are_acquainted(member, other)]
            camp += near
            waiting = [other for other in waiting if other not in near]
        found.append(camp)
    return found


def _what_is_wrong_in(camp: "list[Process]") -> str:
    leaders = [process for process in camp if process.leader_term is not None]
    if len(leaders) != 1 or not leaders[0].leader_term or not leaders[0].leader_term.is_open:
        return f"{len(leaders)} leaders"
    living = frozenset(process.node for process in camp)
    for process in camp:
        if process.presence.election.leader != leaders[0].node:
            return f"{process.node[:2]} follows another leader"
        if process.presence.membership.alive() != living:
            return f"{process.node[:2]} doesn't think that everybody is alive who is"
    return _how_ledgers_differ(camp)


def _who_does_not_know(world: "World", found: "list[list[Process]]") -> str:
    """Who was removed knows it and leads nobody; whoever disagrees was told, and holds it all.

    Its camp's own removal of the one that removed it comes first in the order then.
    """
    for one, other in permutations(found, 2):
        for process, stranger in product(one, other):
            if process.knows(stranger.node) and not _has_all(process, stranger):
                return f"{process.node[:2]} doesn't know that {stranger.node[:2]} is another's"
    leading = [machine.process for machine in world.checks.acting.values()]
    removed = (process for process in leading if process is not None and process.is_removed)
    return next((f"{process.node[:2]} leads, and is removed" for process in removed), "")


def _has_all(process: "Process", stranger: "Process") -> bool:
    held = process.replica.ledger.tips()
    theirs = stranger.replica.ledger.tips().items()
    return all(held.get(writer, 0) >= index for writer, index in theirs)


def _are_acquainted(one: "Process", other: "Process") -> bool:
    return one.knows(other.node) and other.knows(one.node)


def _how_ledgers_differ(processes: "list[Process]") -> str:
    ledgers = [process.replica.ledger for process in processes]
    if len({true_head(ledger) for ledger in ledgers}) > 1:
        return "ledgers differ"
    if len({ledger.head() for ledger in ledgers}) > 1:
        return "heads differ"
    return "states or lines differ" if len(set(map(content_of, processes))) > 1 else ""


def _check_that_it_works(world: "World") -> None:
    """The leader records one more thing, and everybody has it soon."""
    written: list[str] = []

    def record(process: "Process") -> None:
        entry = process.record(lambda own: work(own, "the last"))
        written.extend([] if entry is None else [str(entry.writer)])

    found = camps(world)
    world.met["members have removed each other"] += len(found) > 1
    for process in (process for camp in found for process in camp):
        process.machine.deliver(record)
    if len(written) != len(found):
        raise Violation(f"{len(written)} nodes record after healing")
    ends_at = world.now + COPIED_S
    world.run(LOOK_EVERY_S)
    while world.now < ends_at and what_is_wrong(world):
        world.run(LOOK_EVERY_S)
    _must(what_is_wrong(world))


def _check_that_leaders_are_obeyed(world: "World") -> None:
    """Whatever was obeyed before, it bars nobody for good: at most, the leader's term rises."""
    ends_at = world.now + OBEYED_S
    while (trouble := what_is_wrong(world) or _who_disobeys(world)) and world.now < ends_at:
        for process in (process for camp in camps(world) for process in camp):
            process.machine.deliver(order)
        world.run(LOOK_EVERY_S)
    _must(trouble)


def _who_disobeys(world: "World") -> str:
    for camp in camps(world):
        leader = next(process for process in camp if process.leader_term is not None)
        term = leader.presence.election.term
        for process in camp:
            if process is not leader and not process.fencing.obeys(leader.node, term):
                return f"{process.node[:2]} doesn't obey {leader.node[:2]} in term {term}"
    return ""


def what_is_lost(world: "World") -> str:
    """Say what is missing that a holder's disk lived to keep; empty where nothing is."""
    lost = (_what_is_lost_in(world, camp) for camp in camps(world))
    return next(filter(None, lost), "")


def _what_is_lost_in(world: "World", camp: "list[Process]") -> str:
    places = {process.place for process in camp}
    kept = [record.entry for record in world.witness.records if record.holders & places]
    for process in camp:
        tips, node = process.replica.ledger.tips(), process.node[:2]
        for entry in kept:
            if tips.get(str(entry.writer), 0) < entry.index:
                return f"entry {entry.index} of {entry.writer.node[:2]} is lost on {node}"
    facts = [fact for entry in kept for fact in entry.facts]
    return what_is_not_in_force(camp[0].replica.ledger.state, facts)


def _check_merging(world: "World", before: list[Content]) -> None:
    """Uniting what lay on the disks before the healing gives one state in any order."""
    contents = [content for content in before if not content.snapshot]
    loaded = {content.entries: content for content in contents}
    held = {entries: load(content) for entries, content in loaded.items()}
    ledgers = [held[content.entries] for content in contents]
    told: set[str] = set()
    for _ in range(2):
        world.rng.shuffle(ledgers)
        merged = Ledger(CLUSTER)
        for ledger in ledgers:
            _unite(merged, ledger)
        if ledgers:
            told.add(f"{merged.head()} {merged.state.digest()} {line_of(merged)}")
    if len(told) > 1:
        raise Violation("the order of merging matters")


def _unite(merged: Ledger, other: Ledger) -> None:
    for entry in other.entries():
        try:
            add_verified(merged, entry)
        except JupiterError as error:
            raise Violation(f"two histories can't be merged: {error.message}") from error


def _must(trouble: str) -> None:
    if trouble:
        raise Violation(trouble)
