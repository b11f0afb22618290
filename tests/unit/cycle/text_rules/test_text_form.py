"""One form of text, whatever program wrote it."""

import random
import textwrap
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.text_rules.prose_rules import judge_prose
from jupiterd.cycle.text_rules.text_form import LineMeaning, printed_paragraphs, text_form
from jupiterd.cycle.text_rules.word_breaks import TextWords, before_next

WORDS = (  # noqa: SIM905 - shorter so
    "the a to of and in that with carpenter table oak workshop measured board water garden village "
    "morning people build from their every well-known friend opened window because light river"
).split()


def paragraphs(seed, number=12):
    """Return paragraphs of several sentences, different ones for each seed."""
    print("seed", seed)
    rng = random.Random(seed)

    def sentence():
        words = rng.choices(WORDS, k=rng.randrange(8, 18))
        return " ".join(words).capitalize() + "."

    return [" ".join(sentence() for _ in range(rng.randrange(3, 7))) for _ in range(number)]


@pytest.mark.parametrize("layout", list(LineMeaning))
@pytest.mark.parametrize("end", ["\r\n", "\r", " \n", "\t \r\n", "\n"])
def test_the_end_of_a_line_has_one_form(layout, end):
    lines = ["\ufeff# Notes", "", "One sentence stands here alone.", ""]
    assert text_form(end.join(lines), layout) == "# Notes\n\nOne sentence stands here alone.\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", " \n"])
@pytest.mark.parametrize("width", [45, 60, 72, 90])
def test_hard_wrapped_paragraphs_are_lines_again_and_pass_the_rules(end, width):
    for seed in range(17):
        written = paragraphs(seed)
        wrapped = "\n\n".join(textwrap.fill(text, width) for text in written) + "\n"
        found = text_form(wrapped.replace("\n", end), LineMeaning.PLAIN)
        assert found == "\n\n".join(written) + "\n"
        assert judge_prose(found, "en").reason is None


@pytest.mark.parametrize("width", [38, 45, 90])
def test_lines_of_a_narrow_column_become_paragraphs_and_pass_the_rules(width):
    for seed in range(20):
        written = paragraphs(seed, 20)
        column = "\n".join(textwrap.fill(text, width) for text in written)
        found = text_form(column, LineMeaning.PDF)
        assert judge_prose(found, "en").reason is None
        assert found.split() == " ".join(written).split()
        assert len(found.splitlines()) <= len(written) + 2


def test_words_that_were_cut_are_healed_and_compounds_keep_their_hyphen():
    column = (
        "La energía corre por el cable y llega a cada casa del barrio, de modo que la cor-\n"
        "riente alterna del norte alimenta la fábrica de noche y también la de día; un in-\n"
        "geniero bien conocido por todos en la ciudad y en el campo, el señor Teixidó-\n"
        "Marí, midió la corriente de nuevo y anotó el valor en su cuaderno de tapas verdes."
    )
    found = text_form(column, LineMeaning.PDF)
    assert "la corriente alterna" in found
    assert "un ingeniero bien" in found
    assert "Teixidó-Marí" in found
    english = (
        "The well-known author of a guide for people who build a house writes that a well-\n"
        "known rule of wood is worth more than a new one, and that treatment pre-\n"
        "and post-sale differs as is told at length by the page http://a.example/long-\n"
        "path/of-it in what they cost."
    )
    healed = text_form(english, LineMeaning.PDF)
    assert "a well-known rule" in healed
    assert "treatment pre- and post-sale" in healed
    assert "http://a.example/long-path/of-it" in healed


@pytest.mark.parametrize(
    ("line", "following", "joined"),
    [
        ("auf der Donau-", "dampf und mehr", "auf der Donaudampf und mehr"),
        ("in Nordrhein-West-", "falen wohnt", "in Nordrhein-Westfalen wohnt"),
        ("die Nord-", "Süd-Achse", "die Nord-Süd-Achse"),
        ("die Vor-", "und Nachteile", "die Vor- und Nachteile"),
        ("die Ein-", "sowie Ausgänge", "die Ein- sowie Ausgänge"),
        ("ein E-", "mail-Dienst", "ein E-mail-Dienst"),
        ("das US-", "amerikanische Banner", "das US-amerikanische Banner"),
        ("die deutsch-", "französische Grenze", "die deutsch-französische Grenze"),
    ],
)
def test_german_compounds_are_one_word_unless_a_capital_follows(line, following, joined):
    text = "Die Donau und der Dampf, das US Banner; amerikanische, deutsch, französische, E, mail."
    assert before_next(line, following, TextWords.of(text)) + following == joined


def test_english_compounds_keep_their_hyphen_whatever_they_begin_with():
    text = "The Donau and the dampf: a Well and what is known of das und der."
    assert not TextWords.of(text.replace("der", "")).is_german
    known = TextWords.of("Well of the known world")
    assert before_next("Well-", "known facts", known) == "Well-"


def test_a_soft_hyphen_and_ligatures_are_what_they_stand_for():
    text = "The o\ufb03ce \ufb01nds a \ufb02oor of a co\u00ad\nlumn beside the étude that we heard."
    found = text_form(text, LineMeaning.PDF)
    assert found == "The office finds a floor of a column beside the étude that we heard."


VERSE = """Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?

In what distant deeps or skies
Burnt the fire of thine eyes?
On what wings dare he aspire?
What the hand, dare seize the fire?
"""
CODE = """def area(width, height):
    # The sides of a rectangle that stands upright, both of them in metres
    if width < 0 or height < 0:
        raise ValueError("no side may be negative")
    total = width * height
    return total
"""
LISTED = """- a list of things that are about as long as each other, as some are
- another thing that is written on one line and is nearly as long too
- the third one of them, which ends the list and has some more words
1. first of several steps, written by somebody who fills their lines
2. second of several steps, written by somebody who fills the lines
"""
TABLE = """Name          Width      Height     Colour of the thing as it is sold here
table         120        75         brown
chair         45         90         brown and some white for those who want it
shelf         80         200        white
"""


@pytest.mark.parametrize("layout", [LineMeaning.PLAIN, LineMeaning.PDF])
@pytest.mark.parametrize("text", [VERSE, CODE, LISTED, TABLE])
def test_verse_code_lists_and_tables_keep_their_lines(layout, text):
    assert text_form(text, layout) == text


def test_headings_and_first_lines_begin_a_paragraph_of_their_own():
    written = paragraphs(1, 3)
    filled = [textwrap.fill(text, 72, initial_indent="   ") for text in written]
    found = text_form("INTRODUCTION\n" + "\n".join(filled), LineMeaning.PLAIN)
    assert found.split("\n") == ["INTRODUCTION", *(f"   {text}" for text in written)]


MARKDOWN = """---
title: A page
tags: [a,
  b]
---

# Heading

A paragraph that is
cut into lines of
no fixed width.

- An item that goes
  on in the next line
- Another one,
lazily continued

> A quotation on
> two lines.

A hard break\u0020\u0020
stays, and so\\
does this one.

```python
x = 1
y = 2
```

    indented code
    stays too

| a | b |
|---|---|
| 1 | 2 |

::: note
The text of it
goes on.
:::

Term
: its meaning
"""
JOINED = """---
title: A page
tags: [a,
  b]
---

# Heading

A paragraph that is cut into lines of no fixed width.

- An item that goes on in the next line
- Another one, lazily continued

> A quotation on two lines.

A hard break
stays, and so\\
does this one.

```python
x = 1
y = 2
```

    indented code
    stays too

| a | b |
|---|---|
| 1 | 2 |

::: note
The text of it goes on.
:::

Term
: its meaning
"""


def test_markdown_is_joined_where_markdown_itself_joins():
    assert text_form(MARKDOWN, LineMeaning.MARKDOWN) == JOINED
    assert text_form(MARKDOWN.replace("\n", "\r\n"), LineMeaning.MARKDOWN) == JOINED


@pytest.mark.parametrize("layout", [LineMeaning.VERBATIM, LineMeaning.PARAGRAPHS])
def test_lines_that_mean_something_are_left_alone(layout):
    wrapped = "\n".join(textwrap.fill(text, 60) for text in paragraphs(2))
    assert text_form(wrapped, layout) == wrapped


def test_chinese_lines_are_joined_without_a_blank():
    line = "我们希望它能被正确识别出来、" * 3
    text = f"{line}\n{line}\n{line}"
    assert text_form(text, LineMeaning.MARKDOWN) == line * 3


@given(st.text("ab-. \n\r\t#>|`*:\u00ad\ufb01é", max_size=200), st.sampled_from(list(LineMeaning)))
def test_any_text_has_a_form_and_no_letter_of_it_is_lost(text, layout):
    found = text_form(text, layout)
    letters = text.replace("\ufb01", "fi") if layout is not LineMeaning.VERBATIM else text
    assert [c for c in found if c.isalpha()] == [c for c in letters if c.isalpha()]
    assert "\r" not in found


def test_a_word_without_end_takes_no_time():
    began_s = time.process_time()
    text_form("acgt" * 100_000 + "\nand then\n", LineMeaning.PDF)
    assert time.process_time() - began_s < 5.0


def test_paragraphs_of_printed_pages_stand_apart_and_a_table_of_contents_is_left_out():
    page = "1 Introduction . . . . . . . . . 3\n2.1 Names ........ xii\nA first line.\nA second."
    assert printed_paragraphs(page) == "A first line.\n\nA second."
    assert printed_paragraphs("And so on ... and on") == "And so on ... and on"
