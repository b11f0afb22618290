"""Formulas in Markdown, wikis and pages: trained on as they were written, judged as one word."""

import pytest

from jupiterd.cycle.text_rules.document_kind import document_kind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.cycle.text_rules.markup.inline_marks import without_links, without_marks
from jupiterd.cycle.text_rules.plain_rendering import plain_rendering

LAW = r"$K_{a} = \frac{[\mathrm{H^+}]\,[\mathrm{A^-}]}{[\mathrm{HA}]}$"


@pytest.mark.parametrize(
    "line",
    [
        f"The constant is {LAW} at equilibrium.",
        r"A set $\{x_i\}$ of $n$ points, and \(a_{ij}\) of a matrix.",
        r"Rates follow $$k = A e^{-E_a/(RT)}$$ in most cases.",
        r"$\frac{.5}{2}$ and $\hat{:x}$ look like attributes of a link.",
        r"With $a<b$ and $c>d$ nothing is a tag.",
    ],
)
def test_a_formula_is_trained_on_as_it_was_written(line):
    assert without_links(line) == line


def test_a_formula_is_one_word_where_prose_is_judged():
    told = without_marks(f"The constant is {LAW} at *equilibrium*, for $n$ acids.")
    assert told == "The constant is KaHAHA at equilibrium, for n acids."


@pytest.mark.parametrize(
    "line", ["It costs $5, or US$6 elsewhere.", "Set $HOME and $PATH first.", "From $10 to $20."]
)
def test_money_and_variables_are_no_formulas(line):
    assert without_marks(line) == line


@pytest.mark.parametrize(
    "block",
    [
        "$$\nE = m c^{2}\n$$",
        "$$ E = m c^{2} $$ (eq-energy)",
        "\\[\nE = m c^{2}\n\\]",
        "\\begin{equation}\nE = m c^{2}\n\\end{equation}",
        "```{math}\nE = m c^{2}\n```",
    ],
)
@pytest.mark.parametrize("joint", ["\n\n", "\n"])
def test_a_displayed_formula_is_no_prose_and_stays(block, joint):
    text = f"# Energy\n\nMass and energy are one:{joint}{block}{joint}The speed is that of light.\n"
    form = document_kind("energy.md", text)
    assert "E = m c^{2}" in cleaned_markup(text, form)
    assert plain_rendering(text, form).splitlines()[1:] == [
        "Mass and energy are one:",
        "The speed is that of light.",
    ]


def test_a_sign_that_never_ends_is_no_formula():
    text = "# Prices\n\n$$ is how some write that a place is dear.\n\nIt isn't a formula here.\n"
    assert "is how some write" in plain_rendering(text, document_kind("prices.md", text))


def test_a_wiki_keeps_its_formulas():
    text = (
        "== Water ==\nThe formula is <chem>H2O</chem>, and '''mass''' gives "
        "<math>E = m c^{2}</math> with [[Light|light]].\n{{Infobox|a=<math>x</math>}}\n"
    )
    form = document_kind("water.wiki", text)
    assert r"$\ce{H2O}$, and **mass** gives $E = m c^{2}$ with light." in cleaned_markup(text, form)
