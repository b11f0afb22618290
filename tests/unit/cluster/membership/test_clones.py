"""Two daemons with one key: how each of them learns of it."""

from jupiterd.cluster.membership.clones import MAX_GREETINGS, OVER_S, CloneWatch
from tests.support.cluster.building import commanded, founded_ledger, started
from tests.unit.cluster.ledger.test_ledger import ALICE, copy_of, write


def test_a_daemon_knows_itself_by_the_number_of_its_greeting() -> None:
    watch = CloneWatch()
    watch.greets("1")
    assert watch.is_greeted_by_itself("1", "192.0.2.1:47470")
    assert watch.is_answered_by_itself(True, "192.0.2.1:47470")
    assert not watch.is_seen


def test_both_sides_of_a_greeting_notice_a_clone_and_keep_it_in_mind() -> None:
    one, clone = CloneWatch(), CloneWatch()
    one.greets("1")
    is_caller = clone.is_greeted_by_itself("1", "192.0.2.1:47470")
    assert not one.is_answered_by_itself(is_caller, "192.0.2.2:47470")
    assert one.is_answered_by_itself(True, "192.0.2.3:47470")
    assert (one.seen_at, clone.seen_at) == ("192.0.2.2:47470", "192.0.2.1:47470")


def test_a_greeting_that_arrives_after_the_next_ones_is_known_still() -> None:
    watch = CloneWatch()
    for number in range(MAX_GREETINGS):
        watch.greets(str(number))
    assert watch.is_greeted_by_itself("0", "192.0.2.1:47470")


def test_an_entry_in_our_name_that_we_hold_is_ours() -> None:
    ledger, watch = founded_ledger(ALICE), CloneWatch()
    entry = write(ledger, 2, ALICE, started())
    assert watch.is_ours(ledger, entry.writer, entry)
    ledger.forget({str(entry.writer): entry.index})
    assert watch.is_ours(ledger, entry.writer, entry)
    assert not watch.is_seen


def test_an_entry_in_our_name_that_we_have_not_written_is_a_clones() -> None:
    ledger, watch = founded_ledger(ALICE), CloneWatch()
    entry = write(copy_of(ledger), 2, ALICE, started())
    assert not watch.is_ours(ledger, entry.writer, entry)
    assert watch.seen_at == f"entry {entry.index} of the ledger"


def test_another_entry_at_the_index_of_one_of_ours_is_a_clones() -> None:
    ledger, watch = founded_ledger(ALICE), CloneWatch()
    theirs = copy_of(ledger)
    write(ledger, 2, ALICE, commanded("running", 1))
    rival = write(theirs, 2, ALICE, commanded("stopped", 1))
    assert ledger.is_twin(rival)
    assert not watch.is_ours(ledger, rival.writer, rival)


def test_it_is_over_once_the_clone_was_not_met_for_a_while() -> None:
    watch = CloneWatch()
    assert not watch.is_over(1000.0)
    watch.is_greeted_by_itself("1", "192.0.2.1:47470")
    for met_s in (10.0, 15.0):
        watch.met(met_s)
        assert not watch.is_over(met_s + OVER_S - 1.0)
    assert watch.is_seen
    assert watch.is_over(15.0 + OVER_S)
    assert not watch.is_seen
    assert not watch.is_over(15.0 + OVER_S), "once"


def test_what_a_clone_has_written_in_our_name_is_never_over() -> None:
    ledger, watch = founded_ledger(ALICE), CloneWatch()
    entry = write(copy_of(ledger), 2, ALICE, started())
    watch.met(1.0)
    watch.is_ours(ledger, entry.writer, entry)
    watch.met(2.0)
    assert not watch.is_over(1e9)
