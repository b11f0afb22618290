"""Orders of the past are refused, and those of a second leader of one term."""

import pytest

from jupiterd.cluster.membership.fencing import Obeyed
from jupiterd.errors import RefusedError
from jupiterd.ids import NodeId

LEADER, OTHER = NodeId("a" * 32), NodeId("b" * 32)


def test_the_highest_order_obeyed_never_goes_back() -> None:
    highest = Obeyed()
    for term, attempt in ((1, 1), (1, 2), (2, 2), (2, 2)):
        highest = highest.after(LEADER, term, attempt)
    assert highest == Obeyed(2, 2, LEADER)


@pytest.mark.parametrize(("term", "attempt"), [(2, 9), (3, 3), (0, 0), (2, 0)])
@pytest.mark.parametrize("known", [LEADER, None])
def test_a_lower_term_or_attempt_is_refused(term: int, attempt: int, known: NodeId | None) -> None:
    with pytest.raises(RefusedError, match="after term 3, attempt 4"):
        Obeyed(3, 4, known).after(LEADER, term, attempt)


@pytest.mark.parametrize("attempt", [0, 4, 5])
def test_of_two_leaders_of_one_term_the_first_is_obeyed(attempt: int) -> None:
    with pytest.raises(RefusedError, match=r"of bbbbbbbb's term 3, .* attempt 4 of aaaaaaaa"):
        Obeyed(3, 4, LEADER).after(OTHER, 3, attempt)


def test_a_leader_is_obeyed_as_soon_as_its_term_is_above_the_other_ones() -> None:
    highest = Obeyed(3, 4, LEADER)
    assert highest.least_term(LEADER) == 3
    assert highest.least_term(OTHER) == 4
    assert highest.after(OTHER, 4, 1) == Obeyed(4, 1, OTHER)


def test_work_of_no_gang_leaves_the_attempt_as_it_is() -> None:
    assert Obeyed(3, 4, LEADER).after(LEADER, 5, 0) == Obeyed(5, 4, LEADER)


@pytest.mark.parametrize("obeyed", [Obeyed(), Obeyed(12, 34), Obeyed(12, 34, LEADER)])
def test_what_is_written_is_read_again(obeyed: Obeyed) -> None:
    assert Obeyed.parse(str(obeyed)) == obeyed
    assert Obeyed.parse("") == Obeyed()


def test_what_was_written_without_a_leader_is_read_and_binds_to_none() -> None:
    assert Obeyed.parse("12/34/") == Obeyed(12, 34)
    assert Obeyed.parse("12/34/").after(OTHER, 12, 34) == Obeyed(12, 34, OTHER)
