import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import ClusterFounded
from jupiterd.cluster.ledger.entry import Entry, EntryWriter, parse, seal
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId
from tests.support.cluster.building import (
    CLUSTER,
    NODES,
    SIGNATURE,
    admitted,
    checkpoint,
    commanded,
    founded_ledger,
    make_entry,
    sample_facts,
    started,
    work_done,
)

ALICE, BOB, EVE = (EntryWriter(node, f"u{node[0]}") for node in NODES)


def write(ledger: Ledger, term: int, writer: EntryWriter, *facts: object) -> Entry:
    entry = make_entry(ledger, term, writer, facts)  # pyright: ignore[reportArgumentType]
    assert ledger.add(entry)
    return entry


def copy_of(ledger: Ledger) -> Ledger:
    other = Ledger(CLUSTER)
    for entry in ledger.entries():
        other.add(entry)
    return other


def split_and_written(rng: random.Random) -> tuple[Ledger, Ledger, Ledger]:
    """Three copies of one ledger, each written on by another leader."""
    base = founded_ledger(ALICE, NODES[1:])
    copies = (copy_of(base), copy_of(base), copy_of(base))
    for ledger, node in zip(copies, NODES, strict=True):
        term = ledger.highest_term() + rng.randrange(1, 3)
        for life in range(rng.randrange(1, 3)):
            writer = EntryWriter(node, f"life{life}")
            for _ in range(rng.randrange(4)):
                write(ledger, term, writer, *rng.sample(sample_facts(), rng.randrange(1, 4)))
            term += rng.randrange(1, 3)
    return copies


def pull(ledger: Ledger, source: Ledger, limit_bytes: int) -> None:
    more = True
    while more:
        entries, more = source.lacking(ledger.tips(), limit_bytes)
        for entry in entries:
            assert ledger.add(entry)


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_union_in_any_order_gives_equal_heads_and_states(rng: random.Random) -> None:
    ledgers = list(split_and_written(rng))
    for _ in range(3):
        rng.shuffle(ledgers)
        for ours, theirs in pairwise([*ledgers, ledgers[0]]):
            pull(ours, theirs, limit_bytes=rng.choice([1, 500, 10_000]))
    assert len({ledger.head() for ledger in ledgers}) == 1
    assert len({ledger.state.digest() for ledger in ledgers}) == 1
    assert len({len(ledger) for ledger in ledgers}) == 1


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_entries_delivered_at_random_are_refused_or_lead_to_the_same_ledger(
    rng: random.Random,
) -> None:
    first, second, third = split_and_written(rng)
    pull(first, second, 10_000)
    pull(first, third, 10_000)
    fresh = Ledger(CLUSTER)
    waiting = first.entries()
    fresh.add(waiting[0])
    while len(fresh) < len(first):
        rng.shuffle(waiting)
        for entry in waiting:
            before = fresh.head(), fresh.state.digest()
            try:
                fresh.add(entry)
            except CorruptLedgerError:
                assert (fresh.head(), fresh.state.digest()) == before
    assert fresh.head() == first.head()
    assert fresh.state == first.state


def test_adding_an_entry_twice_changes_nothing() -> None:
    ledger = founded_ledger(ALICE)
    entry = write(ledger, 2, ALICE, started())
    before = ledger.head(), ledger.state.digest(), len(ledger)
    assert not ledger.add(entry)
    assert not ledger.add(parse(seal(entry.body, b"signed once more")))
    assert (ledger.head(), ledger.state.digest(), len(ledger)) == before


def test_the_head_changes_with_every_entry() -> None:
    ledger = Ledger(CLUSTER)
    heads = {ledger.head()}
    for entry in founded_ledger(ALICE, NODES[1:]).entries():
        ledger.add(entry)
        heads.add(ledger.head())
    assert len(heads) == 3


def test_the_head_tells_two_entries_at_one_index_apart() -> None:
    ours, theirs = founded_ledger(ALICE), founded_ledger(ALICE)
    write(ours, 2, ALICE, commanded("running", 1))
    write(theirs, 2, ALICE, commanded("stopped", 1))
    assert ours.tips() == theirs.tips()
    assert ours.head() != theirs.head()


def test_a_clone_that_writes_another_entry_at_an_index_is_refused() -> None:
    ours, theirs = founded_ledger(ALICE), founded_ledger(ALICE)
    write(ours, 2, ALICE, commanded("running", 1))
    rival = write(theirs, 2, ALICE, commanded("stopped", 1))
    with pytest.raises(CorruptLedgerError, match="two different entries") as caught:
        ours.add(rival)
    assert "key.pem" in caught.value.hint


def test_an_entry_of_another_cluster_is_refused() -> None:
    ledger = founded_ledger(ALICE)
    entry = make_entry(ledger, 2, ALICE, [started()], ClusterId("e" * 32))
    with pytest.raises(CorruptLedgerError, match="another cluster"):
        ledger.add(entry)


def test_an_entry_whose_forerunner_is_missing_is_refused() -> None:
    ledger = founded_ledger(ALICE)
    longer = copy_of(ledger)
    write(longer, 2, ALICE, started())
    last = write(longer, 2, ALICE, commanded("stopped", 1))
    with pytest.raises(CorruptLedgerError, match="came before entry 2"):
        ledger.add(last)


def test_an_entry_that_names_another_forerunner_is_refused() -> None:
    ledger = founded_ledger(ALICE)
    other = copy_of(ledger)
    write(ledger, 2, ALICE, started())
    write(other, 2, ALICE, commanded("stopped", 1))
    stray = make_entry(other, 2, ALICE, [started()])
    with pytest.raises(CorruptLedgerError, match="doesn't follow"):
        ledger.add(stray)


def test_a_writers_term_never_goes_back() -> None:
    ledger = founded_ledger(ALICE)
    write(ledger, 5, ALICE, started())
    with pytest.raises(CorruptLedgerError, match="goes back to term 4"):
        ledger.add(make_entry(ledger, 4, ALICE, [commanded("stopped", 1)]))


def test_a_stranger_writes_nothing() -> None:
    ledger = founded_ledger(ALICE)
    before = ledger.head(), ledger.state.digest()
    stranger = make_entry(ledger, 9, EVE, [started()])
    assert ledger.certificate_of(stranger) is None
    with pytest.raises(CorruptLedgerError, match="before it was admitted"):
        ledger.add(stranger)
    assert (ledger.head(), ledger.state.digest()) == before


def test_nobody_admits_itself_by_founding_the_cluster_once_more() -> None:
    ledger = founded_ledger(ALICE)
    founding = make_entry(ledger, 1, EVE, [ClusterFounded("mine"), admitted(EVE.node)])
    assert ledger.certificate_of(founding) is None
    with pytest.raises(CorruptLedgerError):
        ledger.add(founding)


def test_a_founder_that_does_not_admit_itself_founds_nothing() -> None:
    empty = Ledger(CLUSTER)
    for facts in ([ClusterFounded("home")], [admitted(ALICE.node)], [started()]):
        entry = make_entry(empty, 1, ALICE, facts)
        assert empty.certificate_of(entry) is None
        with pytest.raises(CorruptLedgerError):
            empty.add(entry)


def test_an_author_writes_only_above_its_own_admission() -> None:
    ledger = founded_ledger(ALICE)
    write(ledger, 6, ALICE, admitted(BOB.node))
    with pytest.raises(CorruptLedgerError, match="before it was admitted"):
        ledger.add(make_entry(ledger, 5, BOB, [started()]))
    assert ledger.add(make_entry(ledger, 7, BOB, [started()]))


def test_certificates_come_from_the_founding_entry_and_then_from_the_roster() -> None:
    ledger = founded_ledger(ALICE, [BOB.node])
    founding = ledger.entries()[0]
    by_bob = make_entry(ledger, 2, BOB, [started()])
    assert Ledger(CLUSTER).certificate_of(founding) == admitted(ALICE.node).certificate_pem
    assert ledger.certificate_of(by_bob) == admitted(BOB.node).certificate_pem


def test_entries_come_in_the_total_order_whoever_wrote_them() -> None:
    ledger = founded_ledger(ALICE, NODES[1:])
    write(ledger, 4, EVE, started())
    write(ledger, 3, BOB, checkpoint("k1"))
    write(ledger, 3, BOB, checkpoint("k2", "k1"))
    write(ledger, 4, ALICE, work_done("i"))
    orders = [entry.order for entry in ledger.entries()]
    assert orders == sorted(orders)
    assert [entry.term for entry in ledger.entries()] == [1, 1, 3, 3, 4, 4]
    assert ledger.highest_term() == 4


def test_what_a_peer_lacks_is_cut_to_size_and_never_to_nothing() -> None:
    ledger = founded_ledger(ALICE, NODES[1:])
    size_bytes = len(ledger.entries()[0].raw)
    assert ledger.lacking({}, 1) == (ledger.entries()[:1], True)
    assert ledger.lacking({}, size_bytes) == (ledger.entries()[:1], True)
    assert ledger.lacking({}, 10**6) == (ledger.entries(), False)
    assert ledger.lacking({str(ALICE): 1}, 10**6) == (ledger.entries()[1:], False)
    assert ledger.lacking(ledger.tips(), 10**6) == ([], False)


@pytest.mark.parametrize("have", [{"nobody/u": 5}, {str(ALICE): -3}])
def test_a_strange_vector_gets_everything(have: dict[str, int]) -> None:
    assert founded_ledger(ALICE).lacking(have, 10**6)[0] == founded_ledger(ALICE).entries()


def test_a_peer_that_is_ahead_lacks_nothing() -> None:
    assert founded_ledger(ALICE).lacking({str(ALICE): 99}, 10**6) == ([], False)


def test_an_empty_ledger_says_so() -> None:
    ledger = Ledger(CLUSTER)
    assert (len(ledger), ledger.highest_term(), ledger.tips(), ledger.entries()) == (0, 0, {}, [])
    assert ledger.chain_end(ALICE) == (1, "")
    assert ledger.state.blank


def test_a_corrupt_copy_of_an_entry_is_never_taken_for_the_entry() -> None:
    ledger = founded_ledger(ALICE)
    entry = make_entry(ledger, 2, ALICE, [started()])
    for position in range(len(entry.body)):
        body = bytearray(entry.body)
        body[position] ^= 1
        try:
            forged = parse(seal(bytes(body), SIGNATURE))
        except CorruptLedgerError:
            continue
        assert forged.hash != entry.hash  # so the signature of the entry doesn't fit it
