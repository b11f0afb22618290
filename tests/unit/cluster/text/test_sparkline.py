"""A row of numbers as one line of bars."""

import pytest

from jupiterd.cluster.text.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "width", "top", "expected"),
    [
        ([], 10, None, ""),
        ([None, None], 10, None, ""),
        ([0.0, 50.0, 100.0], 10, 100.0, "▁▅█"),
        ([3.0, 3.0], 10, None, "▁▁"),
        ([1.0, None, 8.0], 10, None, "▁ █"),
        ([1.0, 8.0, 1.0, 1.0, None, 2.0], 3, None, "█▁▂"),
        ([250.0, -5.0], 10, 100.0, "█▁"),
    ],
)
def test_bars_are_as_high_as_their_numbers(
    values: list[float | None], width: int, top: float | None, expected: str
) -> None:
    assert sparkline(values, width, top) == expected
