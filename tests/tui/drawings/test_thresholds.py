import pytest

from jupiter_tui.drawings.primitives.lines import Cell, Tone
from jupiter_tui.drawings.primitives.thresholds import NOTHING, age, percent


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, Cell("never", Tone.FAINT)),
        (0.0, Cell("now")),
        (3.4, Cell("3 s")),
        (5.0, Cell("5 s", Tone.WARN)),
        (15.0, Cell("15 s", Tone.BAD)),
        (119.0, Cell("119 s", Tone.BAD)),
        (7000.0, Cell("116 min", Tone.BAD)),
        (90_000.0, Cell("25 h", Tone.BAD)),
        (400_000.0, Cell("4 d", Tone.BAD)),
    ],
)
def test_the_longer_a_node_is_silent_the_louder_it_is_shown(seconds, expected):
    assert age(seconds) == expected


def test_no_value_is_not_zero():
    assert percent(None) == NOTHING == Cell("N/A", Tone.FAINT)
    assert percent(0.0) == Cell("0 %")


def test_a_share_changes_its_tone_at_its_limits():
    tones = [percent(value, warn=90, bad=97).tone for value in (89.9, 90, 96.9, 97)]
    assert tones == [Tone.NORMAL, Tone.WARN, Tone.WARN, Tone.BAD]
