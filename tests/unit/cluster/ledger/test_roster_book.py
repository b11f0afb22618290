"""Who was admitted and removed is known of entries that prove it, whatever a snapshot swallowed."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import NodeAdmitted, NodeRemoved
from jupiterd.cluster.ledger import roster_book
from jupiterd.cluster.ledger.entry import Entry, EntryWriter
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.roster_book import RosterBook
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId, NodeId
from tests.support.cluster.building import CLUSTER, NODES, admitted, founded_ledger, make_entry
from tests.support.cluster.building import started as work
from tests.unit.cluster.ledger.test_ledger import (
    ALICE,
    BOB,
    copy_of,
    pull,
    split_and_written,
    write,
)
from tests.unit.cluster.ledger.test_snapshot import same, snapshot_of

CAROL = NodeId("7" * 32)
DAVE = EntryWriter(NodeId("8" * 32), "u8")


def swallowed(ledger: Ledger) -> Ledger:
    """The ledger, with none of its entries held one by one."""
    ledger.forget(ledger.tips())
    return ledger


def grown_without_bob() -> tuple[Ledger, Ledger]:
    """Alice's ledger, in which Dave was admitted and has admitted Carol, and Bob's old copy."""
    alices = founded_ledger(ALICE, NODES[1:2])
    bobs = copy_of(alices)
    write(alices, 2, ALICE, work(), admitted(DAVE.node))
    write(alices, 3, DAVE, admitted(CAROL))
    return swallowed(alices), bobs


def witness_all(ledger: Ledger, source: Ledger) -> list[Entry]:
    return [e for e in source.roster_lacking(ledger.tips()) if ledger.witness(e)]


def test_who_was_admitted_meanwhile_is_known_of_the_entries_beside_the_snapshot() -> None:
    alices, bobs = grown_without_bob()
    assert alices.lacking(bobs.tips(), 10**6) == ([], False)
    assert len(witness_all(bobs, alices)) == 2
    assert set(bobs.state.members) == {*NODES[:2], DAVE.node, CAROL}
    assert not bobs.state.cycles


def test_who_was_removed_meanwhile_learns_it_from_one_it_has_never_met() -> None:
    alices, bobs = grown_without_bob()
    names = alices.state.roster.admissions_of(BOB.node)
    write(alices, 4, DAVE, NodeRemoved(BOB.node, names, {}))
    witness_all(bobs, swallowed(alices))
    assert BOB.node not in bobs.state.members


def test_the_chain_takes_the_place_of_what_was_witnessed() -> None:
    alices, bobs = grown_without_bob()
    witness_all(bobs, alices)
    assert bobs.head() != alices.head()
    bobs.adopt(snapshot_of(alices))
    assert same(bobs, alices)
    assert bobs.roster_entries() == alices.roster_entries()


def test_whoever_has_witnessed_more_differs_in_its_head_and_tells_the_others() -> None:
    alices, bobs = grown_without_bob()
    another = copy_of(bobs)
    witness_all(bobs, alices)
    assert bobs.head() != another.head()
    assert len(witness_all(another, bobs)) == 2
    assert same(bobs, another)


def test_an_entry_that_hangs_on_an_unknown_admission_is_refused_and_changes_nothing() -> None:
    alices, bobs = grown_without_bob()
    before = copy_of(bobs)
    with pytest.raises(CorruptLedgerError, match="before it was admitted"):
        bobs.witness(alices.roster_entries()[-1])
    assert same(bobs, before)


def test_what_another_cluster_has_agreed_is_refused() -> None:
    alices, bobs = grown_without_bob()
    foreign = make_entry(alices, 9, ALICE, [admitted(CAROL)], ClusterId("e" * 32))
    with pytest.raises(CorruptLedgerError, match="another cluster"):
        bobs.witness(foreign)


def test_no_other_entry_is_slipped_in_for_one_that_is_summed_up() -> None:
    alices, _ = grown_without_bob()
    before = alices.head(), alices.state.digest()
    forged = make_entry(founded_ledger(ALICE), 1, ALICE, [admitted(NodeId("9" * 32))])
    with pytest.raises(CorruptLedgerError, match="isn't the one that is known here"):
        alices.witness(forged)
    assert (alices.head(), alices.state.digest()) == before


def test_a_newcomer_keeps_what_the_snapshot_says_too_for_others() -> None:
    alices, bobs = grown_without_bob()
    fresh = Ledger(CLUSTER)
    fresh.adopt(snapshot_of(alices))
    assert len(witness_all(bobs, fresh)) == 0
    for entry in alices.roster_entries():
        assert fresh.witness(entry)
        assert not fresh.witness(entry)
    assert same(fresh, alices)
    assert len(witness_all(bobs, fresh)) == 2


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_witnessing_first_or_last_leads_to_the_same_ledger(rng: random.Random) -> None:
    ours, theirs, _ = split_and_written(rng)
    expected = copy_of(ours)
    pull(expected, theirs, limit_bytes=10_000)
    told = theirs.roster_entries()
    for entry in told[: rng.randrange(len(told) + 1)]:
        ours.witness(entry)
    pull(ours, theirs, limit_bytes=10_000)
    for entry in told:
        ours.witness(entry)
    assert same(ours, expected)


def test_the_book_has_a_bound_and_the_newest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = founded_ledger(ALICE)
    entries = [write(ledger, 1, ALICE, admitted(NodeId(f"{n:032}"))) for n in range(20)]
    room = sum(len(entry.raw) for entry in entries[-5:])
    monkeypatch.setattr(roster_book, "MAX_BOOK_BYTES", room)
    book = RosterBook()
    for entry in entries:
        book.keep(entry)
    assert book.beyond({}) == entries[-5:]


def test_only_what_admits_or_removes_is_kept() -> None:
    ledger = founded_ledger(ALICE)
    write(ledger, 1, ALICE, work())
    kept = ledger.roster_entries()
    assert [type(fact) for entry in kept for fact in entry.facts][-1] is NodeAdmitted
    assert len(kept) == 1
