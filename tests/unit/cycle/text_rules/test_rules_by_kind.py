from dataclasses import replace

import pytest

from jupiterd.cycle.base.drop_reason import DropReason
from jupiterd.cycle.domain.filters import judge_sample, judge_text
from jupiterd.cycle.text_rules.document_kind import DocumentForm, DocumentKind
from tests.support.cycle.prose import GOOD, page, sentence
from tests.support.workers.data_material import function, real, synthetic

MARKDOWN = DocumentForm(DocumentKind.DOCUMENTATION, "markdown")
EXAMPLE = "```python\n" + "\n".join(f"x{n} = {{{n}: [{n}]}}" for n in range(40)) + "\n```"


def of_kind(text, name, kind=""):
    return replace(real(text), source_uri=f"folder:docs/{name}", document_kind=kind)


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (of_kind(GOOD, "notes.txt", "prose"), None),
        (of_kind(function(1), "pump.py", "code:python"), None),
        (of_kind("int a[] = {1, 2\n" * 9, "pump.c", "code:c"), DropReason.REPEATED_LINES),
        (of_kind('{"a": [1, 2, 3]}', "a.json", "data"), DropReason.DATA),
        (of_kind(function(1), "node_modules/a/b.py", "code:python"), DropReason.VENDORED),
        (of_kind(f"# Pumps\n\n{page(12)}\n\n{EXAMPLE}", "a.md", "documentation"), None),
    ],
)
def test_each_document_of_a_folder_meets_the_rules_of_its_own_kind(sample, reason):
    assert judge_sample(sample, "en").reason is reason


def test_a_sample_of_an_older_version_is_judged_by_what_its_name_says():
    assert judge_sample(of_kind(function(1), "pump.py"), "en").reason is None
    assert judge_sample(of_kind('{"a": 1}', "a.json"), "en").reason is DropReason.DATA


def test_a_domain_of_code_takes_every_text_for_such_code():
    markdown = of_kind(f"# Pumps\n\n{page(12)}", "a.md", "documentation")
    assert judge_sample(markdown, "code:python").reason is not None
    assert judge_sample(of_kind(function(1), "notes.txt", "prose"), "code:python").reason is None


def test_marks_code_and_tables_do_not_count_as_bad_prose():
    table = "\n".join(["| a | b |", "|---|---|", *[f"| {n} | {{{n}}} |" for n in range(40)]])
    links = GOOD.replace(" and ", " [and](https://a.b/{c}/{d}.html#e) ")
    text = f"# Pumps {{#p}}\n\n{links}\n\n{EXAMPLE}\n\n{table}\n\n{page(4)}"
    assert judge_text(text, "en", MARKDOWN).reason is None
    assert judge_text(text, "en").reason is not None, "as plain text it isn't good prose"


def test_a_page_that_is_mostly_an_example_needs_few_sentences():
    text = f"{sentence(1, 40)} {sentence(2, 40)}"
    assert judge_text(f"{text}\n\n{EXAMPLE}", "en", MARKDOWN).reason is None
    assert judge_text(text, "en", MARKDOWN).reason is DropReason.FEW_SENTENCES


def test_a_page_that_explains_hardly_anything_is_a_stub():
    judgement = judge_text(page(7), "en", MARKDOWN)
    assert judgement.reason is DropReason.STUB
    assert (judgement.measure, judgement.limit) == ("explained_bytes", 600)
    assert 300 < judgement.value < 600
    assert judge_text(page(7), "en").reason is None, "plain text stands for itself"
    assert judge_text(f"{page(7)}\n\n{EXAMPLE}", "en", MARKDOWN).reason is None
    assert judge_text(page(7), "en", MARKDOWN, frozenset({DropReason.STUB})).reason is None


def test_a_generated_answer_is_no_stub():
    assert judge_sample(synthetic(page(7)), "en").reason is None


def test_indentation_on_a_printed_page_is_no_code():
    indented = "\n\n".join(f"        {sentence(n)}" for n in range(12))
    assert judge_text(indented, "en", DocumentForm(DocumentKind.OFFICE)).reason is None


def test_the_synopsis_of_a_command_may_have_braces_and_a_page_of_code_may_not():
    synopsis = "pump [*options*...] { fill | empty | hold } *wells*... takes the pump in hand."
    assert judge_text(f"{page(40, 2)}\n\n{synopsis}", "en").reason is DropReason.CURLY_BRACKET
    paragraphs = page(40, 2).replace("\n", "\n\n")
    assert judge_text(f"{paragraphs}\n\n{synopsis}", "en", MARKDOWN).reason is None
    code = "\n\n".join(f"{sentence(n)} pump {{ and so on" for n in range(90, 110))
    judgement = judge_text(f"{paragraphs}\n\n{code}", "en", MARKDOWN)
    assert (judgement.reason, judgement.limit) == (DropReason.CURLY_BRACKET, 0.1)


def reference(of_each: int) -> str:
    """Return the description of functions, each of which shares so many words with the next."""
    alike = sentence(500, of_each)
    return "\n\n".join(f"- pump_{n}(): {alike} {sentence(n, 30)}" for n in range(20))


def test_a_reference_says_like_things_of_like_functions():
    text = reference(of_each=8)
    assert judge_text(text, "en").reason is not None, "as a web page it repeats itself"
    assert judge_text(text, "en", MARKDOWN).reason is None
    judgement = judge_text(reference(of_each=60), "en", MARKDOWN)
    assert judgement.reason is DropReason.REPEATED_PHRASES
    assert judgement.value > judgement.limit == 0.3


def test_the_language_of_a_printed_page_is_that_of_its_sentences():
    form = DocumentForm(DocumentKind.OFFICE)
    name = "pump_a valve_b water_c drain_d wells_e"
    text = "\n\n".join(f"{line}\n\n{name}_{n}" for n, line in enumerate(page(60, 3).split("\n")))
    judgement = judge_text(text, "en", form)
    assert judgement.reason is None
    assert "valve" not in judgement.prose
    assert len(judgement.prose) > 1000
