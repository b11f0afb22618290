"""A ledger that takes snapshots is the ledger of all their entries, and bad ones change nothing."""

import random
from dataclasses import replace

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.facts.facts import ClusterFounded
from jupiterd.cluster.ledger.ledger import Ledger
from jupiterd.cluster.ledger.snapshot import (
    LedgerSnapshot,
    compose_snapshot,
    parse_snapshot,
    seal_snapshot,
)
from jupiterd.errors import CorruptLedgerError
from jupiterd.ids import ClusterId
from tests.support.cluster.building import CLUSTER, NODES, SIGNATURE, founded_ledger, work_done
from tests.unit.cluster.ledger.test_ledger import (
    ALICE,
    BOB,
    copy_of,
    pull,
    split_and_written,
    write,
)


def snapshot_of(ledger: Ledger) -> LedgerSnapshot:
    body = compose_snapshot(ledger.cluster, NODES[0], ledger.last(), ledger.state.placed())
    return parse_snapshot(seal_snapshot(body, SIGNATURE))


def newcomer(source: Ledger) -> Ledger:
    ledger = Ledger(CLUSTER)
    ledger.adopt(snapshot_of(source))
    return ledger


def same(one: Ledger, other: Ledger) -> bool:
    return (one.head(), one.state, len(one)) == (other.head(), other.state, len(other))


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_snapshot_and_what_came_after_make_the_same_ledger(rng: random.Random) -> None:
    ledger, other, _ = split_and_written(rng)
    fresh = newcomer(ledger)
    assert same(fresh, ledger)
    pull(ledger, other, limit_bytes=10_000)
    pull(fresh, ledger, limit_bytes=10_000)
    assert same(fresh, ledger)


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_ledger_that_grew_apart_unites_with_a_snapshot(rng: random.Random) -> None:
    ours, theirs, _ = split_and_written(rng)
    expected = copy_of(ours)
    pull(expected, theirs, limit_bytes=10_000)
    ours.adopt(snapshot_of(theirs))
    ours.adopt(snapshot_of(theirs))
    assert same(ours, expected)


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_two_that_have_forgotten_unite_by_each_others_snapshots(rng: random.Random) -> None:
    ours, theirs, _ = split_and_written(rng)
    for ledger in (ours, theirs):
        ledger.forget({writer: rng.randrange(index + 1) for writer, index in ledger.tips().items()})
    of_ours, of_theirs = snapshot_of(ours), snapshot_of(theirs)
    ours.adopt(of_theirs)
    theirs.adopt(of_ours)
    assert same(ours, theirs)


def test_forgetting_changes_nothing_but_what_is_held() -> None:
    ledger = founded_ledger(ALICE, NODES[1:])
    before = copy_of(ledger)
    ledger.forget({str(ALICE): 1, "nobody/x": 7})
    assert same(ledger, before)
    assert (ledger.entry_count, before.entry_count) == (1, 2)
    assert ledger.chain_end(ALICE) == before.chain_end(ALICE)
    assert not ledger.add(before.entries()[0])
    assert write(ledger, 2, ALICE, work_done("r1/filter/0")).index == 3


def test_who_lacks_forgotten_entries_gets_none_of_those_that_hang_on_them() -> None:
    ledger = founded_ledger(ALICE, NODES[1:])
    write(ledger, 1, BOB, work_done("r1/filter/0"))
    ledger.forget({str(ALICE): 2})
    assert ledger.has_forgotten({})
    assert ledger.lacking({}, 10**6) == ([], False)
    assert not ledger.has_forgotten({str(ALICE): 2})
    assert ledger.lacking({str(ALICE): 2}, 10**6) == (ledger.entries(), False)


def test_a_snapshot_of_another_cluster_is_refused() -> None:
    other = replace(snapshot_of(founded_ledger(ALICE)), cluster=ClusterId("e" * 32))
    with pytest.raises(CorruptLedgerError, match="another cluster"):
        Ledger(CLUSTER).adopt(other)


def test_a_snapshot_with_another_entry_in_a_known_place_changes_nothing() -> None:
    ours, theirs = founded_ledger(ALICE, NODES[1:]), founded_ledger(ALICE, NODES[1:])
    write(ours, 1, BOB, work_done("r1/filter/0"))
    write(theirs, 1, BOB, work_done("r1/filter/1"))
    before = copy_of(ours)
    with pytest.raises(CorruptLedgerError, match="two different entries 1"):
        ours.adopt(snapshot_of(theirs))
    assert same(ours, before)


def mangled(*parts: object) -> bytes:
    """The wire form of a snapshot with these writers, kinds and facts."""
    return seal_snapshot(packed([1, CLUSTER, NODES[0], *parts]), SIGNATURE)


def packed(value: object) -> bytes:
    return msgpack.packb(value) or b""


WRITER = [f"{NODES[0]}/u", 1, 1, "a" * 64]
KIND = ["ClusterFounded", 1, ["label"]]


def test_what_the_next_test_mangles_is_well_formed_otherwise() -> None:
    snapshot = parse_snapshot(mangled([WRITER], [KIND], [[1, 0, 1, 0, ["home"]]]))
    assert list(snapshot.facts) == [((1, NODES[0], "u", 1), ClusterFounded("home"))]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xc1",
        packed([1, 2]),
        packed([b"", b""]),
        packed([packed([1, 2]), SIGNATURE]),
        packed([packed([9, CLUSTER, NODES[0], [], [], []]), SIGNATURE]),
        mangled([], []),
        mangled([["../x", 1, 1, "a" * 64]], [], []),
        mangled([[f"{NODES[0]}/u", 0, 1, "a" * 64]], [], []),
        mangled([[f"{NODES[0]}/u", 1, 1 << 63, "a" * 64]], [], []),
        mangled([[f"{NODES[0]}/u", 1, 1, "h"]], [], []),
        mangled([WRITER], [["New", 1, ["x"]]], [[1, 0, 1, 0, [{b"k": 1}]]]),
        packed([b"\x96" + b"\x80" * (1 << 20), SIGNATURE]),
        mangled([WRITER], [["ClusterFounded", 1, [7]]], []),
        mangled([WRITER], [7], []),
        mangled([WRITER], [KIND], [[1, 1, 1, 0, ["home"]]]),
        mangled([WRITER], [KIND], [[1, 0, 1, 1, ["home"]]]),
        mangled([WRITER], [KIND], [[1, 0, 1, 0, [7]]]),
        mangled([WRITER], [KIND], [[1, 0, 1, 0, ["home", "more"]]]),
        mangled([WRITER], [KIND], [[1, 0, 1, 0]]),
        mangled([WRITER], [KIND], [["1", 0, 1, 0, ["home"]]]),
        mangled([WRITER], [KIND], [7]),
    ],
)
def test_bytes_that_are_no_snapshot_are_refused(raw: bytes) -> None:
    with pytest.raises(CorruptLedgerError):
        parse_snapshot(raw)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_break_the_parser(raw: bytes) -> None:
    for tried in (raw, seal_snapshot(raw, SIGNATURE)):
        with pytest.raises(CorruptLedgerError):
            parse_snapshot(tried)
