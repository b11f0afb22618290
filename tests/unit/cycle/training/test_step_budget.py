"""Steps follow the tokens that there are."""

import pytest

from jupiterd.cycle.training.step_budget import first_budget, later_budget, passes_over


@pytest.mark.parametrize(
    ("sequences", "least", "most"),
    [(21, 21, 84), (82, 82, 328), (240, 240, 780), (780, 780, 780), (20_000, 780, 780), (0, 1, 4)],
)
def test_four_passes_are_taken_and_sixteen_are_the_most_of_the_sizes_steps(
    sequences: int, least: int, most: int
) -> None:
    budget = first_budget(780, 4, sequences)
    assert (budget.least, budget.most) == (least, most)


def test_the_reason_tells_the_passes() -> None:
    assert first_budget(780, 4, 82).reason == (
        "4 passes over the data, up to 16 while held-out loss falls"
    )
    assert first_budget(780, 4, 1560).reason == "the size's own 780 steps, 2.0 passes over the data"


def test_a_later_round_takes_two_passes_and_what_is_left_of_sixteen() -> None:
    assert later_budget(460, 4, 82, 4.0).least == 41
    assert later_budget(460, 4, 82, 4.0).most == 246
    assert later_budget(460, 4, 82, 40.0).most == 41
    assert later_budget(460, 4, 82, 40.0).reason == "2 passes over the data"


def test_passes_are_counted_in_sequences() -> None:
    assert passes_over(780, 4, 82) == pytest.approx(38.05, abs=0.01)
    assert passes_over(780, 4, 0) == 0
