"""Which versions of Jupiter work together."""

import pytest

from jupiterd.versions import Kinship, first_of_series, is_older, kinship, series


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("0.1.0", "0.1.0", Kinship.ALIKE),
        ("0.1.0", "0.1.17", Kinship.ALIKE),
        ("1.4.2", "1.4.2rc1+g1234567", Kinship.ALIKE),
        ("0.1.7", "0.2.0", Kinship.NEIGHBOURS),
        ("1.9.0", "1.10.0", Kinship.NEIGHBOURS),
        ("0.2", "0.1", Kinship.NEIGHBOURS),
        ("0.1.0", "0.3.0", Kinship.APART),
        ("0.9.0", "1.0.0", Kinship.APART),
        ("1.1.0", "2.1.0", Kinship.APART),
        ("0.1.0", "0.11.0", Kinship.APART),
    ],
)
def test_how_close_two_versions_are_is_the_same_either_way(
    one: str, other: str, expected: Kinship
) -> None:
    assert kinship(one, other) is kinship(other, one) is expected


@pytest.mark.parametrize("untold", ["", "latest", "1", "one.two", "9" * 5000, ".1.0"])
def test_what_is_no_version_is_held_against_nobody(untold: str) -> None:
    assert series(untold) is None
    assert kinship(untold, "0.1.0") is kinship("0.1.0", untold) is Kinship.ALIKE
    assert first_of_series(untold) == untold


def test_all_that_are_alike_have_one_name() -> None:
    assert first_of_series("0.1.0") == first_of_series("0.1.7.dev3") == "0.1.0"
    assert first_of_series("0.2.1") == "0.2.0"


def test_ten_comes_after_nine() -> None:
    assert is_older("1.9.5", "1.10.0")
    assert not is_older("1.10.0", "1.10.5")
