import pytest

from jupiterd.ctl.model.example_prompt import example_prompt

GERMAN = {"language": "de", "completions": [{"prompt": "Der Rost  ist\nrot, und er frisst"}]}


@pytest.mark.parametrize(
    ("model", "is_chat", "asked"),
    [
        ({"language": "code:python"}, False, "def count("),
        ({"language": "es"}, False, "La "),
        ({"language": "es"}, True, "\u00bfDe qu\u00e9 trata?"),
        ({"language": "code:python"}, True, "What is it about?"),
        (GERMAN, False, "Der Rost ist rot, und"),
        ({"language": None, "completions": None}, False, "The "),
    ],
)
def test_a_model_is_asked_in_its_own_language(model, is_chat, asked):
    assert example_prompt(model, is_chat=is_chat) == asked
