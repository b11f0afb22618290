import pytest

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.text_rules.prose_rules import judge_prose
from tests.support.cycle.prose import GOOD, page, sentence, word


def verdict(text, *, is_english=True):
    return judge_prose(text, "en" if is_english else "de").reason


def test_good_prose_is_kept_with_what_was_measured():
    judgement = judge_prose(GOOD, "en")
    scores = judgement.scores
    assert judgement.reason is None
    assert scores["sentence_lines"] == 1.0
    assert 95 < scores["words"] < 110
    assert 4 < scores["mean_word_chars"] < 5
    assert scores["words_with_letter"] == 1


@pytest.mark.parametrize("text", ["", " \n\t\n", ".", "Too few words."])
def test_what_has_hardly_a_word_is_too_short(text):
    assert verdict(text) is DropReason.TOO_SHORT


@pytest.mark.parametrize(("last", "reason"), [(5, None), (4, DropReason.TOO_SHORT)])
def test_fifty_words_are_enough(last, reason):
    assert verdict(f"{page(5)} {sentence(9, words=last)}") is reason  # marks aren't counted


@pytest.mark.parametrize(("last", "reason"), [(10, None), (11, DropReason.TOO_LONG)])
def test_a_hundred_thousand_words_are_not_too_many(last, reason):
    assert verdict(f"{page(11_110)} {sentence(50_000, words=last)}") is reason


@pytest.mark.parametrize(
    ("chars", "is_odd"), [(2, True), (3, False), (5, False), (10, False), (11, True)]
)
def test_words_have_three_to_ten_letters_in_the_mean(chars, is_odd):
    text = ". ".join(word(number)[:chars].ljust(chars, "x") for number in range(60)) + "."
    assert (verdict(text, is_english=False) is DropReason.ODD_WORDS) is is_odd


@pytest.mark.parametrize("symbol", ["#", "...", "\u2026"])
@pytest.mark.parametrize(("times", "is_dropped"), [(11, False), (12, True)])
def test_a_tenth_of_the_words_may_be_symbols(symbol, times, is_dropped):
    """The page has 100 words and marks, and each symbol is one more."""
    first, *others = page(10).split(" ")
    spread = [x for n, x in enumerate(others) for x in ((symbol, x) if n % 7 == 1 else (x,))]
    kept = [x for n, x in enumerate(spread) if x != symbol or spread[:n].count(symbol) < times]
    assert kept.count(symbol) == times
    reason = verdict(" ".join([first, *kept]))
    assert (reason is DropReason.SYMBOLS) is is_dropped


@pytest.mark.parametrize(("bullets", "reason"), [(9, None), (10, DropReason.BULLETS)])
@pytest.mark.parametrize("bullet", ["- ", "\u2022 ", "  -"])
def test_nine_lines_of_ten_may_be_of_a_list(bullet, bullets, reason):
    lines = [(bullet if number < bullets else "") + sentence(number, 20) for number in range(10)]
    assert verdict("\n".join(lines)) is reason


@pytest.mark.parametrize(("open_ends", "reason"), [(3, None), (4, DropReason.ELLIPSES)])
def test_three_lines_of_ten_may_end_openly(open_ends, reason):
    lines = [sentence(number) + (".." if number < open_ends else "") for number in range(10)]
    assert verdict("\n".join(lines)) is reason


@pytest.mark.parametrize(("numbers", "reason"), [(22, None), (23, DropReason.FEW_LETTERS)])
def test_four_words_of_five_have_a_letter(numbers, reason):
    """The page has 90 words, and marks that touch them: with 22 numbers 90 of 112 have a letter."""
    words = page(10).split(" ")
    for place in range(numbers):
        words.insert(place * 4 + 2, str(place))
    assert verdict(" ".join(words)) is reason


def test_two_different_stop_words_are_enough_and_asked_of_english_alone():
    text = GOOD.translate(str.maketrans("eo", "ai"))
    for stop in ("thi", "and", "with", "that"):
        text = text.replace(f" {stop} ", " xyz ")
    assert verdict(text) is DropReason.NO_STOP_WORDS
    assert verdict(text, is_english=False) is None
    assert verdict(text + " So the the end.") is DropReason.NO_STOP_WORDS
    assert verdict(text + " So the end of it.") is None


LONG = f"{sentence(1, words=400)} It was so. It was then so."
"""Three sentences."""


@pytest.mark.parametrize(
    ("more", "reason"), [("All left.", DropReason.FEW_SENTENCES), ("All left. Or stayed.", None)]
)
def test_five_sentences_make_a_document(more, reason):
    assert verdict(f"{LONG} {more}", is_english=False) is reason


@pytest.mark.parametrize(
    "line",
    [
        "Only two.",
        "Enable JavaScript to see this page.",
        "Read our Privacy Policy now.",
        f"{'x' * 1001} is a word.",
    ],
)
def test_such_a_line_holds_no_sentence(line):
    text = f"{LONG} They all left."
    assert verdict(f"{text}\n{line}", is_english=False) is DropReason.FEW_SENTENCES
    assert verdict(f"{text}\nNothing is wrong with this line.", is_english=False) is None


@pytest.mark.parametrize(
    ("piece", "reason"),
    [
        ("Lorem ipsum dolor sit amet.", DropReason.PLACEHOLDER),
        ("The code is {x} here.", DropReason.CURLY_BRACKET),
    ],
)
def test_what_is_no_prose_at_all_is_dropped(piece, reason):
    assert verdict(f"{GOOD}\n{piece}") is reason


@pytest.mark.parametrize(("ended", "reason"), [(12, None), (11, DropReason.NO_SENTENCES)])
def test_twelve_lines_of_a_hundred_end_as_sentences_do(ended, reason):
    lines = [sentence(number).rstrip(".") + "." * (number < ended) for number in range(100)]
    assert verdict("\n".join(lines)) is reason


@pytest.mark.parametrize(("short", "reason"), [(67, None), (68, DropReason.SHORT_LINES)])
def test_two_lines_of_three_may_be_of_thirty_characters(short, reason):
    lines = [sentence(number, words=5) for number in range(short)]
    assert max(map(len, lines)) <= 30
    lines += [sentence(1000 + number) for number in range(100 - short)]
    assert verdict("\n".join(lines)) is reason


@pytest.mark.parametrize(("words", "reason"), [(2, None), (4, DropReason.REPEATED_LINES)])
def test_a_hundredth_of_the_characters_may_be_of_repeated_lines(words, reason):
    again = sentence(5000, words)
    lines = [sentence(number) for number in range(28)]
    share = len(again) / sum(map(len, [*lines, again, again]))
    assert (share > 0.01) is (reason is not None), "the example is on the wrong side"
    assert verdict("\n".join([*lines, again, again])) is reason


@pytest.mark.parametrize(("blank", "reason"), [(20, None), (22, DropReason.LIST)])
def test_three_new_lines_for_ten_words_make_a_list(blank, reason):
    """Ten lines of ten words and marks have nine ends; blank lines add theirs."""
    text = page(10, in_line=1)
    assert verdict(text + "\n" * blank) is reason


def test_repeated_phrases_are_dropped():
    assert verdict(page(40) + " And so they went home." * 30) is DropReason.REPEATED_PHRASES
