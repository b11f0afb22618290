"""Heads, feet and numbers of printed pages belong to no text."""

from jupiterd.cycle.text_rules.running_heads import without_running_heads

PROSE = (
    "The kernel asks the device for its name and waits.\nThen it reads what was written there.",
    "A second try is made after a while, and no third one.\nWhat was lost is asked for again.",
    "At the end the device is given back, as it was found.\nNobody else may use it before.",
    "Its name is kept for later, when it may come again.\nSo it is known at once.",
)


def pages(head: str = "", foot: str = "") -> list[str]:
    return [
        "\n".join(filter(None, (head.format(number), text, foot.format(number))))
        for number, text in enumerate(PROSE, 7)
    ]


def test_a_head_that_comes_again_goes_whatever_number_it_has():
    assert without_running_heads(pages(head="Chapter 2: Devices {}")) == list(PROSE)


def test_numbers_of_pages_go_in_any_form():
    for foot in ("{}", "- {} -", "Page {} of 90", "{} / 90"):
        assert without_running_heads(pages(foot=foot)) == list(PROSE), foot


def test_roman_numbers_go_too():
    made = [
        f"{text}\n{number}" for text, number in zip(PROSE, ("ii", "iii", "iv", "v"), strict=True)
    ]
    assert without_running_heads(made) == list(PROSE)


def test_left_and_right_pages_may_have_heads_of_their_own():
    heads = ("8 The book", "The chapter 9", "10 The book", "The chapter 11")
    made = [f"{head}\n{text}" for head, text in zip(heads, PROSE, strict=True)]
    assert without_running_heads(made) == list(PROSE)


def test_a_head_of_one_page_goes_where_its_number_counts_on() -> None:
    heads = (
        "2.1. Names 11",
        "12 Chapter 2. The device",
        "2.2. Waiting 13",
        "14 Chapter 2. The end",
    )
    made = [f"{text}\n{foot}" for foot, text in zip(heads, PROSE, strict=True)]
    assert without_running_heads(made) == list(PROSE)
    lone = [
        f"{text}\nIt took {7 * n * n + 3} s, and no more than {n}" for n, text in enumerate(PROSE)
    ]
    assert without_running_heads(lone[:1] + list(PROSE[1:])) == lone[:1] + list(PROSE[1:])


def test_text_that_comes_once_stays_at_the_end_of_a_page():
    assert without_running_heads(list(PROSE)) == list(PROSE)


def test_rows_of_a_table_stay_at_the_end_of_a_page():
    made = [f"{text}\n{number} {number + 5} {number * 3}" for number, text in enumerate(PROSE)]
    assert without_running_heads(made) == made


def test_text_inside_a_page_stays_though_it_comes_again():
    made = [f"{text}\nReturns an error.\n{text[::-1]}" for text in PROSE]
    assert without_running_heads(made) == made


def test_pages_that_are_all_alike_keep_their_text():
    assert without_running_heads(["Closed today."] * 3) == ["Closed today."] * 3
