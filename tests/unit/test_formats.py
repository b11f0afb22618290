import pytest

from jupiterd.formats import counted, counted_tokens, duration, plain, rate, size, table


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, "0.0 s"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (59.6, "1 min 00 s"),
        (65, "1 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7380, "2 h 03 min"),
    ],
)
def test_lengths_of_time(seconds, expected):
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0.25, "0.25/s"), (12.54, "12.5/s"), (1250.4, "1,250/s")]
)
def test_rates_have_about_three_digits(value, expected):
    assert rate(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(512, "512 B"), (1536, "1.5 KiB"), (64 << 30, "64.0 GiB")]
)
def test_sizes_carry_their_unit(value, expected):
    assert size(value) == expected


def test_columns_are_as_wide_as_their_widest_cell():
    assert table(("A", "NAME"), [("long", None), ("x", "y")]) == [
        "A     NAME",
        "long  N/A",
        "x     y",
    ]


def test_text_from_elsewhere_stays_on_one_line_and_steers_nothing():
    assert plain("a\x1b[2Jb\nc") == "a?[2Jb?c"
    assert plain(0) == "0"
    assert plain("Secci\u00f3n\u00a02") == "Secci\u00f3n 2"


def test_nouns_agree_with_their_number_and_tokens_are_told_in_a_unit_that_says_something():
    assert (counted(1, "pass", "passes"), counted(1200, "pass", "passes")) == (
        "1 pass",
        "1,200 passes",
    )
    told = [counted_tokens(count) for count in (1, 12_288, 796_000, 19_975_372_800)]
    assert told == ["1 token", "12,288 tokens", "0.80 million tokens", "19,975.4 million tokens"]
    assert counted_tokens(9_000, of=796_000) == "0.01 million tokens"
