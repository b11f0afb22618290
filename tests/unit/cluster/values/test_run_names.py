"""Which run people mean."""

import pytest

from jupiterd.cluster.values.run_names import Named, is_round_name, meant
from jupiterd.errors import UsageError

NEWEST = Named("newest", "letters", ["abc1", "f00d"])
ABC = Named("named like an id", "abc", ["0123"])
OLDEST = Named("oldest", "letters", ["abd2", "f00d"])
ALL = (NEWEST, ABC, OLDEST)


def test_an_exact_name_counts_before_the_beginning_of_an_id():
    assert meant(ALL, "abc") == ["named like an id"]
    assert meant(ALL, "letters") == ["newest", "oldest"]


def test_else_the_beginning_of_an_id_counts():
    assert meant(ALL, "abc1") == meant((NEWEST, OLDEST), "abc") == ["newest"]
    assert meant(ALL, "f0") == ["newest", "oldest"], "one thing that two have made alike"
    assert meant(ALL, "poems") == meant(ALL, "") == []


@pytest.mark.parametrize("path", ["~/2024", "./2024", "../7", "~me/7", "/7", "letters/x7", "7"])
def test_a_path_that_ends_in_a_number_is_no_round(path: str):
    assert is_round_name("letters/7")
    assert not is_round_name(path)


def test_what_could_be_several_is_refused():
    with pytest.raises(UsageError, match="ab could be any of abc1, abd2"):
        meant(ALL, "ab")
