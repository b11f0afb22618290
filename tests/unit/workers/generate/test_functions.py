"""Cutting real functions, and what of a completion is a function again."""

import pytest

from jupiterd.workers.generate.functions import FunctionOpening, completed, ends_function, openings

PLAIN = '''\
def mean(numbers):
    """Return the mean."""
    total = sum(numbers)
    count = len(numbers)
    return total / count
'''
METHOD = """\
class Stack:
    @property
    def top(self):
        if not self.items:
            raise IndexError
        last = self.items[-1]
        self.seen += 1
        return last
"""


def test_a_function_is_cut_after_its_docstring():
    (opening,) = openings(PLAIN)
    assert opening.prompt == 'def mean(numbers):\n    """Return the mean."""\n   '
    assert opening.indent == 0


def test_without_a_docstring_it_is_cut_after_the_first_part_of_its_body():
    (opening,) = openings(METHOD)
    assert opening.prompt.startswith("    @property\n    def top(self):\n        if not")
    assert opening.prompt.endswith(
        "            raise IndexError\n        last = self.items[-1]\n       "
    )
    assert opening.indent == 4


@pytest.mark.parametrize(
    "text",
    [
        "def broken(:\n",
        "x = 1\n",
        "def short(a):\n    b = a\n    return b\n",
        'def only_words():\n    """One.\n\n    Two.\n    Three.\n    """\n',
        "def long(a):\n" + "    a += 1\n" * 80,
        "def crowded(a): b = a; c = b; d = (\n1,\n2,\n3)\n",
        "x = '\0'\n",
    ],
)
def test_what_is_no_function_of_reasonable_size_gives_none(text: str):
    assert openings(text) == []


@pytest.mark.filterwarnings("error")
def test_odd_escapes_in_peoples_strings_are_no_concern():
    assert len(openings(PLAIN.replace("the mean", r"the \d mean"))) == 1


def test_the_true_end_of_a_function_is_taken_whole():
    (opening,) = openings(PLAIN)
    assert completed(opening, PLAIN[len(opening.prompt) :]) == PLAIN


def test_a_method_loses_its_outer_indentation():
    (opening,) = openings(METHOD)
    text = completed(opening, " return None\n\n    def next(self):\n        pass\n")
    assert text is not None
    assert text.startswith("@property\ndef top(self):\n    if not")
    assert text.endswith("\n    return None\n")


OPENING = FunctionOpening("def f(a):\n    b = a\n   ", 0)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (" c = b\n    return c\n", "    c = b\n    return c\n"),
        (" c = b\n    return (c\n", "    c = b\n"),
        (" c = b\n    retu", "    c = b\n"),
        (" c = b\n    if c:\n", "    c = b\n"),
        (" if a:\n        c = 1\n    else:\n", "    if a:\n        c = 1\n"),
        (" c = b\n\n\ndef g():\n    pass\n", "    c = b\n"),
        (" c = b\nreturn c\n", "    c = b\n"),
        (" c = b\n        d = 1\n    return c\n", "    c = b\n"),
        (" c = b\n# a remark\n    return c\n", "    c = b\n# a remark\n    return c\n"),
    ],
)
def test_the_longest_part_that_parses_is_kept(written: str, wanted: str):
    assert completed(OPENING, written) == "def f(a):\n    b = a\n" + wanted


@pytest.mark.parametrize(
    "written", ["", "\n\n", " # only words\n", " c = (\n", "wrong = 1\n", " '''open\n", " c = b"]
)
def test_what_adds_no_statement_is_dropped(written: str):
    assert completed(OPENING, written) is None


@pytest.mark.parametrize(
    ("written", "is_over"),
    [
        (" c = 1\n", False),
        (" c = 1\n\n", False),
        (" c = 1\n    d", False),
        (" c = 1\n# note", False),
        (" c = 1\nd", True),
        ("odd", False),
    ],
)
def test_the_end_is_seen_when_a_line_comes_back_to_def(written: str, is_over: bool):
    assert ends_function(written, 0) is is_over


def test_the_end_of_a_method_is_seen_at_its_own_margin():
    assert ends_function(" c = 1\n    def g(self):", 4)
    assert not ends_function(" c = 1\n        d = 2", 4)
