import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup

RST = DocumentForm(DocumentKind.DOCUMENTATION, "rst")


def cleaned(text: str) -> str:
    return cleaned_markup(text, RST).rstrip("\n")


@pytest.mark.parametrize(
    ("written", "trained_on"),
    [
        ("=====\nPumps\n=====\n\nSub\n---\nThey move.", "# Pumps\n\n## Sub\n\nThey move."),
        ("See :ref:`the page <a>` and `site <http://x>`_ now.", "See the page and site now."),
        ("Use :class:`~pump.Valve` or ``x{}``.", "Use `Valve` or `x{}`."),
        ("Valves_ are |this| [1]_ here.", "Valves are this here."),
        (".. note::\n   :class: x\n\n   It is hot. And\n   so on.", "It is hot. And so on."),
        (".. versionadded:: 3.2\n   It is new here.", "It is new here."),
        ("Do::\n\n    open(1)\n\n      x\n\nOn.", "Do:\n\n```\nopen(1)\n\n  x\n```\n\nOn."),
        (".. code-block:: python\n   :linenos:\n\n   x = 1", "```python\nx = 1\n```"),
        (
            ".. function:: turn(x)\n              turn(z)\n\n   It turns by x.",
            "`turn(x)`, `turn(z)`:\n\nIt turns by x.",
        ),
        (":param x: how far it is", "- `x`: how far it is"),
        ("- one\n  more\n\n  * nested item\n- two", "- one more\n  - nested item\n- two"),
        ("1. first\n#. second", "1. first\n- second"),
        ("term\n   Definition of it.", "term\n\nDefinition of it."),
        ("+---+---+\n| a | b |\n+---+---+\n\nAfter it.", "After it."),
        ("===  ===\na    b\n===  ===\nc    d\n===  ===\n\nAfter it.", "After it."),
        (">>> 1 + 1\n2\n\nOn.", "```python\n>>> 1 + 1\n2\n```\n\nOn."),
        (".. toctree::\n   :maxdepth: 2\n\n   a\n   b\n\nThe text.", "The text."),
        (".. automodule:: pump\n   :members:\n\nThe text.", "The text."),
        (".. comment here\n   and more\n\n.. _label:\n\nThe text.", "The text."),
        (".. [1] A footnote here.", "A footnote here."),
    ],
)
def test_restructured_text_becomes_cleaned_markdown(written: str, trained_on: str) -> None:
    assert cleaned(written) == trained_on


@given(st.text(st.sampled_from("ab .\n:`*_|=-~+[]<>\\"), max_size=300))
def test_no_text_is_too_odd(text: str) -> None:
    assert isinstance(cleaned_markup(text, RST), str)


def test_what_stands_for_held_code_may_stand_in_the_text():
    assert cleaned("Press \ue0021\ue003 and `stop` now.") == "Press 1 and `stop` now."
