import pytest

from jupiterd.cluster.values.branch_names import branch_name, find_branch
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import CycleId

ONE, OTHER = CycleId("1" * 16), CycleId("2" * 16)
KNOWN = [(ONE, "abc" + "0" * 61), (ONE, "abd" + "0" * 61), (OTHER, "e" * 64)]


def test_a_branch_is_found_by_its_name_the_beginning_of_it_or_of_its_leaf() -> None:
    for wanted in (branch_name(*KNOWN[0]), "11111111-abc", "abc", KNOWN[0][1]):
        assert find_branch(KNOWN, wanted) == KNOWN[0]
    assert find_branch(KNOWN, "2") == KNOWN[2]


def test_what_could_be_several_or_none_is_refused() -> None:
    with pytest.raises(UsageError, match="ab could be any of 11111111-abc00000, 11111111-abd"):
        find_branch(KNOWN, "ab")
    for wanted in ("", "x", "11111111-f"):
        with pytest.raises(NotFoundError, match="no branch is called"):
            find_branch(KNOWN, wanted)
