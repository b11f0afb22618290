"""Entries that nobody may accept: of strangers, of thieves, and of members whose machine lies.

Owns how they are made. Doesn't know who refuses them or why.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from jupiterd.cluster.facts.facts import (
    WALKED_IN,
    ClusterFounded,
    Fact,
    NodeAdmitted,
    PairingWindowSet,
)
from jupiterd.cluster.ledger.entry import Entry, EntryWriter, compose, parse, seal
from jupiterd.cluster.values.bounds import MAX_NUMBER
from jupiterd.errors import JupiterError
from jupiterd.ids import NodeId
from tests.simulation.invariants.witness import TWIN
from tests.simulation.node.recording import admission
from tests.simulation.node.replica import CLUSTER, load
from tests.simulation.node.signing import certificate_of, sign

if TYPE_CHECKING:
    from tests.simulation.node.machine import Machine
    from tests.simulation.world import World

STRANGER = NodeId("f" * 32)
WRONG_HASH = "0" * 64


def forge(world: "World") -> None:
    """Let a bad entry reach a random machine, in an exchange like any other."""
    source, target = (world.rng.choice(list(world.machines.values())) for _ in range(2))
    kind = world.rng.choice(KINDS)
    raws = [entry.raw for entry in kind(world, source)]
    if raws:
        world.tell(f"{kind.__name__.strip('_')} for {target.node[:2]}")
        target.deliver(lambda process: _offer(process.anti_entropy.answer, raws))


def forge_twins(world: "World") -> None:
    """Let two nodes each get another first entry of one writer, both signed by its key."""
    source = world.rng.choice(list(world.machines.values()))
    writer = EntryWriter(source.node, f"{TWIN}{world.fresh_name(8)}")
    for machine in world.rng.sample(list(world.machines.values()), 2):
        facts = [PairingWindowSet(world.rng.random() < 0.5, world.rng.randrange(1000))]
        raws = [_write(source.node, writer, 9, 1, "", facts).raw]
        machine.deliver(lambda process, raws=raws: _offer(process.anti_entropy.answer, raws))
    world.tell(f"{source.node[:2]} and its twin write")


def forge_clones_entry(world: "World") -> None:
    """Let a node get what a copy of a running machine's memory would write."""
    source, target = world.rng.sample(list(world.machines.values()), 2)
    if source.process is None:
        return
    replica, term = source.process.replica, source.process.presence.election.term + 1
    index, previous = replica.ledger.chain_end(replica.writer)
    world.clones.copied_writers.add(str(replica.writer))
    facts = [PairingWindowSet(is_open=True, edit=world.rng.randrange(1000))]
    raws = [_write(source.node, replica.writer, term, index, previous, facts).raw]
    target.deliver(lambda process: _offer(process.anti_entropy.answer, raws))
    world.tell(f"a copy of {source.node[:2]} writes entry {index}")


def backdate(world: "World") -> None:
    """Let who walked in admit a friend, once the door is shut, in the term of its own admission."""
    target = world.rng.choice(list(world.machines.values()))
    state = load(target.disk.content).state
    guests = sorted(state.members.keys() - state.roster.trusted)
    if not (guests and world.outside and world.door.shut_at):
        return
    guest, friend = world.rng.choice(guests), world.rng.choice(world.outside)
    term, by, *_ = state.admitted_at(guest) or (0, guest)
    writer = EntryWriter(guest, world.fresh_name(16))
    admitted = NodeAdmitted(
        friend, f"friend {len(world.door.backdated)}", certificate_of(friend), WALKED_IN
    )
    entry = _write(guest, writer, term + (guest <= by), 1, "", [admitted])
    world.door.backdated.append((world.now, guest, admitted))
    world.met["an admission is dated back"] += state.roster.is_shut
    target.deliver(lambda process: _offer(process.anti_entropy.answer, [entry.raw]))
    world.tell(f"{guest[:2]} dates back that it lets {friend[:2]} in, to {target.node[:2]}")


def _offer(answer: Callable[..., object], raws: Sequence[bytes]) -> None:
    try:
        answer({}, raws)
    except JupiterError:
        return


def _write(
    signer: NodeId, writer: EntryWriter, term: int, index: int, previous: str, facts: Sequence[Fact]
) -> Entry:
    body = compose(CLUSTER, term, writer, index, previous, facts)
    return parse(seal(body, sign(signer, body)))


def _entry_of_a_stranger(world: "World", _source: "Machine") -> list[Entry]:
    writer = EntryWriter(STRANGER, world.fresh_name(16))
    return [_write(STRANGER, writer, 99, 1, "", [PairingWindowSet(is_open=True, edit=99)])]


def _founding_by_a_stranger(world: "World", _source: "Machine") -> list[Entry]:
    writer = EntryWriter(STRANGER, world.fresh_name(16))
    return [_write(STRANGER, writer, 0, 1, "", [ClusterFounded("mine"), admission(STRANGER)])]


def _entry_in_a_members_name(world: "World", source: "Machine") -> list[Entry]:
    writer = EntryWriter(source.node, world.fresh_name(16))
    return [_write(STRANGER, writer, 9, 1, "", [PairingWindowSet(is_open=True, edit=99)])]


def _entry_that_follows_nothing(world: "World", source: "Machine") -> list[Entry]:
    """Correctly signed by its author, behind that author's last entry, with another hash before."""
    for name, tip in load(source.disk.content).last().items():
        writer, facts = EntryWriter.parse(name), [PairingWindowSet(is_open=True, edit=99)]
        if writer.node != source.node or tip.index == 0:
            continue
        return [_write(source.node, writer, tip.term, tip.index + 1, WRONG_HASH, facts)]
    return []


def _entry_of_an_older_term(world: "World", source: "Machine") -> list[Entry]:
    """Correctly signed and chained, and its term goes back."""
    for name, tip in load(source.disk.content).last().items():
        writer, facts = EntryWriter.parse(name), [PairingWindowSet(is_open=True, edit=99)]
        if writer.node == source.node and tip.term > 0:
            return [_write(source.node, writer, tip.term - 1, tip.index + 1, tip.hash, facts)]
    return []


def _entry_before_admission(world: "World", _source: "Machine") -> list[Entry]:
    """Correctly signed by a member whose admission sorts after it."""
    for machine in world.machines.values():
        admitted_at = load(machine.disk.content).state.admitted_at(machine.node)
        if admitted_at is not None and admitted_at[0] > 1:
            writer = EntryWriter(machine.node, world.fresh_name(16))
            facts = [PairingWindowSet(is_open=True, edit=99)]
            return [_write(machine.node, writer, 0, 1, "", facts)]
    return []


def _entry_far_above_all_terms(world: "World", source: "Machine") -> list[Entry]:
    """Correctly signed by a member, and nobody could elect anybody above its term."""
    term = world.rng.choice((MAX_NUMBER, MAX_NUMBER - 1, 2**40))
    writer = EntryWriter(source.node, world.fresh_name(16))
    return [_write(source.node, writer, term, 1, "", [PairingWindowSet(is_open=True, edit=99)])]


KINDS = (
    _entry_far_above_all_terms,
    _entry_of_a_stranger,
    _founding_by_a_stranger,
    _entry_in_a_members_name,
    _entry_that_follows_nothing,
    _entry_of_an_older_term,
    _entry_before_admission,
)
