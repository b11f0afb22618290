"""What a node with a join token says while it doesn't see the token's cluster."""

from jupiterd.cluster.membership.token_wait import PATIENCE_S, token_wait_words
from jupiterd.ids import ClusterId
from tests.unit.cluster.membership.test_admission import BLANK, BUSY, CLOSED

WANTED = ClusterId("a" * 32)


def test_which_cluster_is_wanted_and_which_are_seen_is_said() -> None:
    told = token_wait_words(WANTED, BLANK.cluster, [BLANK, CLOSED, BUSY], 0.0)
    assert told == "aaaaaaaa, and sees only lab (88888888) and office (77777777)"


def test_where_nobody_is_in_sight_it_is_said_after_ten_seconds() -> None:
    assert token_wait_words(WANTED, BLANK.cluster, [], PATIENCE_S - 0.1) == ""
    assert token_wait_words(WANTED, BLANK.cluster, [BLANK], PATIENCE_S) == (
        "aaaaaaaa, and nobody answers yet"
    )


def test_what_is_in_sight_or_found_is_not_looked_for() -> None:
    assert token_wait_words(BUSY.cluster, BLANK.cluster, [CLOSED, BUSY], 99.0) == ""
    assert token_wait_words(BUSY.cluster, BUSY.cluster, [CLOSED], 99.0) == ""
