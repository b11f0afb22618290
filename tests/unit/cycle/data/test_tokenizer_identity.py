"""Two tokenizers are one where they cut text alike, end it alike, and talk alike."""

import json
from typing import Any

import pytest

from jupiterd.cycle.data.special_tokens import end_token, special_token_ids, without_token_ids
from jupiterd.cycle.data.tokenizer_identity import TokenizerIdentity, difference, identity_of

MARK = {"id": 2, "content": "<end>", "special": True}
PLAIN: dict[str, Any] = {
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel"},
    "added_tokens": [MARK],
    "model": {"type": "BPE", "vocab": {"a": 0, "ab": 1, "<end>": 2}, "merges": [["a", "b"]]},
    "post_processor": None,
}


def identity(
    tokenizer: dict[str, Any] = PLAIN, template: str = "", **said: dict[str, Any]
) -> TokenizerIdentity:
    files = {f"{name}.json": json.dumps(value) for name, value in said.items()}
    more = {"chat_template.jinja": template} if template else {}
    return identity_of({"tokenizer.json": json.dumps(tokenizer), **files, **more})


def test_how_a_file_was_written_down_does_not_count():
    other = json.loads(json.dumps(PLAIN, sort_keys=True))
    other["model"] |= {"merges": ["a b"], "continuing_subword_prefix": "", "ignore_merges": False}
    other |= {"padding": {"pad_id": 0}, "post_processor": {"type": "ByteLevel"}}
    assert difference(identity(other), identity()) == ""


def test_ids_marks_and_templates_count():
    swapped = PLAIN | {"model": PLAIN["model"] | {"vocab": {"a": 1, "ab": 0, "<end>": 2}}}
    assert "cut text in different ways" in difference(identity(swapped), identity())
    told = identity(tokenizer_config={"eos_token": {"content": "<end>"}})
    assert difference(told, identity(config={"eos_token_id": [2, 7]})) == ""
    assert "end with <end> there, with <|endoftext|> here" in difference(told, identity())
    assert "chat templates" in difference(identity(template="{{ a }}"), identity())
    old = identity(tokenizer_config={"chat_template": "{{ a }}"})
    assert difference(old, identity(template="{{ a }}")) == ""


def template(*marks: str) -> dict[str, Any]:
    parts = [{"SpecialToken": {"id": mark, "type_id": 0}} for mark in marks]
    return {"type": "TemplateProcessing", "single": [*parts, {"Sequence": {"id": "A"}}]}


@pytest.mark.parametrize(
    ("processor", "said", "begin"),
    [
        (None, {}, ""),
        (template("<s>"), {}, "<s>"),
        (template("<s>"), {"add_bos_token": False}, ""),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, template("<s>")]}, {}, "<s>"),
        (None, {"add_bos_token": True, "bos_token": "<s>"}, "<s>"),
        ({"type": "RobertaProcessing", "cls": ["<s>", 1], "sep": ["<end>", 2]},
         {"eos_token": "<end>"}, "<s>"),
    ],
)  # fmt: skip
def test_what_stands_before_a_document_counts(
    processor: dict[str, Any] | None, said: dict[str, Any], begin: str
):
    found = identity(PLAIN | {"post_processor": processor}, tokenizer_config=said)
    assert found.begin == begin
    other = TokenizerIdentity(found.cut, found.end, found.template, "<other>")
    words = f"begin with {begin or 'no mark'} there, with <other> here"
    assert words in difference(found, other)
    older = TokenizerIdentity.from_plain(
        {n: v for n, v in found.to_plain().items() if n != "begin"}
    )
    assert difference(older, other) == "", "one of before says nothing of it"


def test_it_comes_over_the_wire_as_it_was():
    sent = identity(template="{{ a }}")
    assert TokenizerIdentity.from_plain(sent.to_plain()) == sent


@pytest.mark.parametrize("text", ["[]", "{", '"a"'])
def test_a_file_that_says_nothing_is_no_tokenizer(text: str):
    with pytest.raises(ValueError):  # noqa: PT011 - json's own, or ours
        identity_of({"tokenizer.json": text})


def test_the_tokenizer_s_own_word_is_believed_first():
    said = {
        "tokenizer_config.json": {"eos_token": "<|im_end|>"},
        "generation_config.json": {"eos_token_id": [5, 6]},
        "config.json": {"eos_token_id": 7},
    }
    assert end_token(said) == "<|im_end|>"
    assert end_token(said | {"tokenizer_config.json": {"eos_token": None}}) == 5
    assert end_token({"config.json": {"eos_token_id": 7}}) == 7
    assert end_token({"config.json": {"eos_token_id": True}}) is None
    assert end_token({}) is None


def test_a_configuration_keeps_its_ids_unless_they_are_of_another_tokenizer():
    said = {"eos_token_id": [3, 4], "bos_token_id": None, "hidden_size": 8}
    assert special_token_ids(said, 0, 10) == {"eos_token_id": [3, 4], "bos_token_id": None}
    all_alike = {"bos_token_id": 9, "eos_token_id": 9, "pad_token_id": 9}
    assert special_token_ids({"bos_token_id": 1}, 9, 10) == all_alike
    assert special_token_ids({"eos_token_id": 1, "pad_token_id": 10}, 9, 10) == all_alike
    assert without_token_ids(said) == {"hidden_size": 8}
