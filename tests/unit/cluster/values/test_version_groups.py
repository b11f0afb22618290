"""What becomes of members whose versions differ."""

import pytest

from jupiterd.cluster.values.version_groups import difference, is_outnumbered, why_refused


@pytest.mark.parametrize(
    ("able", "expected"),
    [
        ([], False),
        (["0.1.0", "0.2.0"], False),  # one each: who leads goes on
        (["0.2.0"], True),  # who leads has no engine, so nobody works
        (["0.1.0", "0.2.0", "0.2.1"], True),
        (["0.1.0", "0.1.5", "0.2.0", "0.2.1"], False),
        (["0.1.0", "0.2.0", "0.3.0"], False),
        (["0.1.0", "0.2.0", "0.3.0", "0.3.0"], True),
        (["", "unheard of", ""], False),
    ],
)
def test_a_leader_is_outnumbered_by_one_other_version_on_more_machines(
    able: list[str], expected: bool
) -> None:
    assert is_outnumbered("0.1.0", able) is expected


def test_who_does_not_know_its_own_version_is_never_outnumbered() -> None:
    assert not is_outnumbered("", ["0.2.0"] * 9)


@pytest.mark.parametrize("new", range(8))
def test_of_two_versions_at_most_one_steps_aside_for_the_other(new: int) -> None:
    able = ["0.2.0"] * new + ["0.1.0"] * (7 - new)
    assert is_outnumbered("0.1.0", able) is (new > 3)
    assert is_outnumbered("0.2.0", able) is (new < 4)


@pytest.mark.parametrize("program", ["0.1.0", "0.2.9", "0.3.0", "", "unheard of"])
def test_a_newcomer_one_minor_version_away_stands_in_nobodys_way(program: str) -> None:
    assert why_refused(program, "0.2.0") == ""


def test_a_newcomer_further_away_is_told_which_side_is_to_be_upgraded() -> None:
    assert "upgrade it first" in why_refused("0.1.0", "0.3.0")
    assert "upgrade this cluster first" in why_refused("1.0.0", "0.3.0")


def test_the_difference_names_the_older_side() -> None:
    assert difference("lap", "0.1.0", "0.1.9") == ("", "")
    assert difference("lap", "0.1.0", "0.2.0")[1].startswith("upgrade lap: ")
    assert difference("lap", "0.2.0", "0.1.0")[1].startswith("upgrade the leader")
