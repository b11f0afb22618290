"""Prose for the tests of the rules."""

from string import ascii_lowercase

GOOD = (
    "The river rises in the hills to the north of the town, and people have lived beside it for "
    "a long time. They say that it never floods, though nobody has measured it with any care.\n"
    "In spring the water is cold and clear. Later in the year it turns brown, because farmers "
    "upstream wash the mud from their fields. A bridge of stone crosses it near the old mill.\n"
    "Every second summer a small fair is held on its banks. Children swim there, their parents "
    "sell honey and bread, and at night there are lamps on the water."
)


def word(number: int) -> str:
    """Return a word of five letters, another one for each number."""
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, 26)
        letters += ascii_lowercase[letter]
    return letters


def sentence(number: int, words: int = 9) -> str:
    """Return a sentence of so many words, nothing of which comes in one of another number."""
    stop = ("of", "and", "with", "to", "the")[number % 5]
    first, *others = (word(number * words + place) for place in range(words - 1))
    return " ".join([first.capitalize(), stop, *others]) + "."


def page(sentences: int, in_line: int = 5) -> str:
    """Return so many sentences in lines."""
    found = [sentence(number) for number in range(sentences)]
    return "\n".join(
        " ".join(found[start : start + in_line]) for start in range(0, sentences, in_line)
    )
