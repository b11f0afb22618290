import pytest

from jupiterd.cycle import filters
from jupiterd.cycle.filters import DropReason, judge_sample, judge_text
from jupiterd.cycle.lineage import Sample

GOOD_CODE = '''\
"""Sums."""


def add(first, second):
    """Return the sum of two numbers."""
    return first + second
'''

GOOD_PROSE = (
    "The river rises in the hills to the north of the town. "
    "People have lived beside it for a long time, and they say that it never floods. "
    "In spring the water is cold and clear. "
) * 3


@pytest.mark.parametrize("language", ["code:python", "code:c"])
def test_good_code_is_kept(language):
    assert judge_text(GOOD_CODE, language) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", DropReason.TOO_SHORT),
        ("x = 1\n" + " \n" * 100, DropReason.TOO_SHORT),
        ("x = 1\n" * 200_000, DropReason.TOO_LONG),
        (GOOD_CODE + "DATA = '" + "ab" * 600 + "'\n", DropReason.MINIFIED),
        ("abcdefgh = " + "1 + " * 28 + "1\n", DropReason.MINIFIED),
        ("# This file is auto-generated\n" + GOOD_CODE, DropReason.GENERATED),
        ("# DO NOT EDIT\n" + GOOD_CODE, DropReason.GENERATED),
        ("[" + "((), (), ()),\n" * 20 + "]", DropReason.FEW_LETTERS),
        ("value = value + 1\n" * 20, DropReason.REPEATED_LINES),
        (GOOD_CODE + "def broken(:\n", DropReason.UNPARSABLE),
        (GOOD_CODE.replace("return", "retrun"), DropReason.UNPARSABLE),
    ],
)
def test_bad_code_is_dropped_with_its_reason(text, reason):
    assert judge_text(text, "code:python") is reason


def test_other_languages_of_code_need_not_parse_as_python():
    text = "int add(int first, int second) {\n  return first + second;\n}\n/* sums of two */\n"
    assert judge_text(text, "code:c") is None
    assert judge_text(text, "code:python") is DropReason.UNPARSABLE


def test_a_word_about_generated_files_deep_inside_is_no_mark():
    assert judge_text(GOOD_CODE + "\n" * 20 + "# do not edit\n", "code:python") is None


def test_warnings_of_the_parser_stay_inside():
    assert judge_text(GOOD_CODE + "pattern = '\\d'\n", "code:python") is None


def test_text_nested_beyond_the_parser_is_dropped_not_raised():
    assert judge_text("name = " + "(" * 900 + "\n" * 50, "code:python") is not None


@pytest.mark.parametrize("language", ["en", "de"])
def test_good_prose_is_kept(language):
    assert judge_text(GOOD_PROSE, language) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Too few words.", DropReason.TOO_SHORT),
        ("word " * 100_001, DropReason.TOO_LONG),
        ("a b c d e " * 20, DropReason.ODD_WORDS),
        ("12345 6789 to 4321 " * 20, DropReason.FEW_LETTERS),
        (GOOD_PROSE + "# " * 20, DropReason.SYMBOLS),
        ("The same line of text every time.\n" * 20, DropReason.REPEATED_LINES),
        (
            "\n".join(
                f"- the point number {number} of this list of many other points"
                for number in range(20)
            ),
            DropReason.BULLETS,
        ),
        (
            "\n".join(
                f"the thought about the matter that is called {n} and what comes of it then..."
                for n in range(9)
            ),
            DropReason.ELLIPSES,
        ),
        (
            "\n".join(f"the heading and number {number} of the page" for number in range(20)),
            DropReason.NO_SENTENCES,
        ),
        ("Berge steigen hoch hinauf, Wasser rinnt herab. " * 10, DropReason.NO_STOP_WORDS),
    ],
)
def test_bad_prose_is_dropped_with_its_reason(text, reason):
    assert judge_text(text, "en") is reason


def test_stop_words_are_asked_of_english_alone():
    assert judge_text("Berge steigen hoch hinauf, Wasser rinnt herab. " * 10, "de") is None


def test_real_and_generated_text_meet_the_same_rules():
    common = {
        "id": "1",
        "text": "# auto-generated\n" + GOOD_CODE,
        "cluster_id": "c",
        "source_uri": "u",
        "revision": "",
        "license": "MIT",
        "collector": "x@1",
        "fetched_at": "",
    }
    real = Sample(kind="real", depth=0, parents=(), **common)
    synthetic = Sample(kind="synthetic", depth=1, parents=("p",), **common)
    assert judge_sample(real, "code:python") is DropReason.GENERATED
    assert judge_sample(synthetic, "code:python") is DropReason.GENERATED


def test_repeated_lines_are_counted_without_blanks_and_indentation():
    assert filters.repeated_line_share("a\n  a\n\n\nb\nc\n") == 0.25
    assert filters.repeated_line_share(" \n") == 0.0
