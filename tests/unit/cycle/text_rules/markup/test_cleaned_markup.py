import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from jupiterd.cycle.text_rules.markup.cleaned_markup import cleaned_markup
from jupiterd.cycle.text_rules.plain_rendering import plain_rendering

MARKDOWN = DocumentForm(DocumentKind.DOCUMENTATION, "markdown")


def cleaned(text: str) -> str:
    return cleaned_markup(text, MARKDOWN).rstrip("\n")


def plain(text: str) -> str:
    return plain_rendering(text, MARKDOWN)


@pytest.mark.parametrize(
    ("written", "trained_on"),
    [
        pytest.param("A *pump* moves `water`.", "A *pump* moves `water`.", id="marks stay"),
        pytest.param("One line\nand another.", "One line and another.", id="wrapped lines"),
        pytest.param("One.  \nTwo.", "One.  \nTwo.", id="a forced break"),
        pytest.param('See [the `pump` page](a/b_(c).md "x").', "See the `pump` page.", id="link"),
        pytest.param(
            "See [valves][v] and [v] now.\n\n[v]: v.md", "See valves and v now.", id="refs"
        ),
        pytest.param("A [[valve|closed valve]] here.", "A closed valve here.", id="wiki link"),
        pytest.param(
            "[![built](b.svg)](ci) A pump moves water.", "A pump moves water.", id="badge"
        ),
        pytest.param(
            "A pump[^1] moves.\n\n[^1]: A note it is.", "A pump moves.\n\nA note it is.", id="foot"
        ),
        pytest.param(
            "---\ntitle: Pumps\nrank: 1\n---\nThey move water.",
            "# Pumps\n\nThey move water.",
            id="front",
        ),
        pytest.param(
            "# Pumps { #pumps .x }\n\nThey move.", "# Pumps\n\nThey move.", id="attributes"
        ),
        pytest.param("Pumps\n=====\nThey move.", "# Pumps\n\nThey move.", id="underlined"),
        pytest.param(
            "# A\n\nSome text.\n\n## Empty\n\n### Too\n\n## End",
            "# A\n\nSome text.",
            id="empty sections",
        ),
        pytest.param(
            "{% include 'x' %}\n{{ toc }}\nWater moves on.", "Water moves on.", id="template"
        ),
        pytest.param("{* ../src/a.py hl[1] *}\n\nWater moves on.", "Water moves on.", id="include"),
        pytest.param(
            "::: pump.Valve\n    options:\n      x: 1\n\nWater moves on.",
            "Water moves on.",
            id="api",
        ),
        pytest.param(
            '!!! note "Mind"\n    It is hot.\n\nOn.', "Mind\n\nIt is hot.\n\nOn.", id="admonition"
        ),
        pytest.param("/// tip | Mind\n\nIt is hot.\n\n///", "Mind\n\nIt is hot.", id="slashes"),
        pytest.param(":::note[Mind]\nIt is hot.\n:::", "Mind\n\nIt is hot.", id="colons"),
        pytest.param('=== "Linux"\n\n    It is hot.', "It is hot.", id="tab"),
        pytest.param("> [!NOTE]\n> It is hot.\n> Very.", "> It is hot. Very.", id="alert"),
        pytest.param("<!-- not\nthis -->\nWater moves on.", "Water moves on.", id="comment"),
        pytest.param("<script>\nx = 1\n</script>\nWater moves on.", "Water moves on.", id="script"),
        pytest.param(
            '<div class="x">\n\nWater moves <b>on</b>.\n\n</div>', "Water moves on.", id="tags"
        ),
        pytest.param("Use <code>on</code> or <kbd>F1</kbd>.", "Use `on` or `F1`.", id="code tags"),
        pytest.param(
            "- one\n- two\n  more\n\n  - three\n\n1. first",
            "- one\n- two more\n  - three\n1. first",
            id="lists",
        ),
        pytest.param("- [x] done work\n- [ ] open work", "- done work\n- open work", id="boxes"),
        pytest.param(
            "Text here.\n\n- [One](1.md)\n- [Two](2.md), [Three](3.md)",
            "Text here.",
            id="navigation",
        ),
        pytest.param(
            "- [One](1.md): what it is and does.",
            "- One: what it is and does.",
            id="explained link",
        ),
        pytest.param("[Next page](next.md)", "[Next page](next.md)", id="nothing left"),
        pytest.param(
            "Do:\n\n```{.py title='a'}\nx = {1}\n```", "Do:\n\n```py\nx = {1}\n```", id="code"
        ),
        pytest.param(
            "Do:\n\n    x = 1\n\n    y = 2", "Do:\n\n```\nx = 1\n\ny = 2\n```", id="indented code"
        ),
        pytest.param("Do:\n\n```\n--8<-- 'a.py'\n```", "Do:", id="included code"),
        pytest.param(
            "- Do:\n\n    ```sh\n    ls\n    ```",
            "- Do:\n\n  ```sh\n  ls\n  ```",
            id="code in a list",
        ),
        pytest.param(
            "It is so and so.\n\nX.\n\nIt is so and so.", "It is so and so.\n\nX.", id="twice"
        ),
    ],
)
def test_a_document_is_cleaned(written: str, trained_on: str) -> None:
    assert cleaned(written) == trained_on


def test_modules_of_a_page_that_is_a_program_too_go() -> None:
    modules = "import Tabs from '@theme/Tabs';\nimport './a.css'\n\nexport const x = {a: 1}\n"
    text = 'import taxes from abroad are high.\n\n<Tabs groupId="a">\n\nOn it goes.\n\n</Tabs>'
    assert cleaned(modules + "\n" + text) == "import taxes from abroad are high.\n\nOn it goes."


def test_code_stays_as_it_was_written() -> None:
    code = "```python\n# [not](a link) <b>\n\nif x:\n    print('{{ y }}')\n```"
    assert cleaned(f"Do this:\n\n{code}") == f"Do this:\n\n{code}"


def test_a_long_record_of_a_terminal_is_cut_down_to_its_commands() -> None:
    output = "\n".join(f"reading {number}" for number in range(20))
    assert cleaned(f"Do:\n\n```console\n$ read all\n{output}\n$ stop\n```") == (
        "Do:\n\n```console\n$ read all\n$ stop\n```"
    )


def test_an_example_that_has_grown_by_a_line_is_shown_once() -> None:
    example = "\n".join(f"x{number} = {number}" for number in range(10))
    text = f"First:\n\n```\n{example}\n```\n\nThen more:\n\n```\n{example}\ny = 1\n```"
    assert cleaned(text) == f"First:\n\n```\n{example}\n```\n\nThen more:"


def test_a_list_of_the_pages_own_headings_goes() -> None:
    page = "# 2. Pumps\n\nA pump.\n\n## 2.1. Valves\n\nA valve."
    text = f"- 2. Pumps\n  - 2.1. Valves\n- and more\n\n{page}"
    assert cleaned(text) == f"- and more\n\n{page}"


def test_tables_stay_unless_they_are_navigation() -> None:
    head = "| name | page |\n|---|---|\n"
    assert cleaned(f"{head}| flow | litres |") == f"{head}| flow | litres |"
    assert cleaned(f"Text.\n\n{head}| [a](a) | [b](b) |") == "Text."


def test_a_note_with_a_frame_around_it_is_text() -> None:
    note = "Whoever opens the valve has to close the pump first."
    assert cleaned(f"|  | Note |\n|---|---|\n|  | {note} |") == f"Note\n\n{note}"


def test_a_table_with_words_in_one_column_is_text_that_it_lays_out() -> None:
    rows = "| 1. | How is the pump primed? |\n| --- | --- |\n|  | Pour water into it first. |\n"
    more = "| 2. | What does the pump cost in a year of use by a farm of this size? |\n"
    told = cleaned(f"# Pumps\n\n{rows}{more}|  | Less than the well does. |")
    assert "|" not in told
    assert told.index("primed?") < told.index("Pour water") < told.index("Less than")


def test_a_table_of_data_stays_a_table() -> None:
    told = cleaned(
        "Text.\n\n| pump | of 9 litres, for the house |\n| --- | --- |\n| b | c |\n\nEnd."
    )
    assert "| pump |" in told


@pytest.mark.parametrize("place", ["{table}\n\n{text}", "{text}\n\n{table}"])
def test_a_table_at_an_end_that_leads_to_other_pages_goes(place: str) -> None:
    table = "| Using pumps |  |  |\n| --- | --- | --- |\n|  | Chapter 2. Wells |  |"
    text = "# Pumps\n\nA pump lifts water."
    assert cleaned(place.format(table=table, text=text)) == text


def test_what_stands_above_a_web_pages_first_heading_and_names_others_goes() -> None:
    text = "# Pumps\n\nA pump lifts water. It has:\n\n- a valve"
    page = f"Wells\n\n- The handbook\n\n{text}\n\nWells"
    assert cleaned_markup(page, DocumentForm(DocumentKind.WEB)) == text
    assert cleaned(page) == page, "a file that somebody wrote begins where it begins"
    said = f"A pump is a machine that lifts water, and more.\n\n{text}"
    assert cleaned_markup(said, DocumentForm(DocumentKind.WEB)) == said


def test_a_list_of_the_pages_near_by_goes_from_a_web_pages_end() -> None:
    text = "# Pumps\n\nA pump lifts water."
    page = f"{text}\n\n- **Prev** 2. Wells\n- **Next** 4. Drains"
    assert cleaned_markup(page, DocumentForm(DocumentKind.WEB)) == text
    assert cleaned(page) == page
    listed = f"{text}\n\n- a valve\n- a hose\n- a tap"
    assert cleaned_markup(listed, DocumentForm(DocumentKind.WEB)) == listed


def test_a_pages_title_above_its_heading_goes() -> None:
    text = "# 2. All about *pumps*\n\nText."
    assert cleaned(f"All about pumps\n\n{text}") == text


def test_a_paragraph_that_comes_again_in_other_marks_goes() -> None:
    text = "Text about `pumps` and wells."
    assert cleaned(f"{text}\n\nMore.\n\nText about *pumps* and wells.") == f"{text}\n\nMore."


@pytest.mark.parametrize(
    ("written", "judged"),
    [
        ("# Pumps\n\nA **pump** moves `water.on({x})`.", "Pumps\nA pump moves water.on x."),
        ("A &lt;pump&gt; \\*moves\\* _it_.", "A <pump> *moves* it."),
        ("Do:\n\n```\nx = {}\n```\n\n| a | b |\n|---|---|\n| c | d |", "Do:"),
        ("- one\n- two", "one\ntwo"),
        ("`on(x: int)`\n\nIt turns {name} on.", "It turns name on."),
        ("Note\n\nIt moves.\n\nNote\n\nIt stops.", "Note\nIt moves.\nIt stops."),
    ],
)
def test_rules_judge_words_without_marks(written: str, judged: str) -> None:
    assert plain(written) == judged


@given(st.text(st.sampled_from("ab .\n#-*>`~|![](){}<>:/=+1\\\"'&_"), max_size=300))
def test_no_text_is_too_odd_and_cleaning_twice_reads_the_same(text: str) -> None:
    once = cleaned_markup(text, MARKDOWN)
    assert isinstance(plain(once), str)


def test_a_deeply_nested_text_is_read_in_time() -> None:
    assert cleaned_markup(">" * 5000 + " a", MARKDOWN)
    assert cleaned_markup("\n".join("  " * n + "- a b" for n in range(800)), MARKDOWN)
    assert cleaned_markup("[" * 20000, MARKDOWN)
    assert cleaned_markup("*a" * 20000, MARKDOWN)


@pytest.mark.parametrize("line", ["!!! {} (", "a { {} [", "/// {} ("])
def test_a_line_of_blanks_takes_no_time(line):
    began_s = time.process_time()
    cleaned(line.replace("{}", " " * 20_000))
    assert time.process_time() - began_s < 5.0
