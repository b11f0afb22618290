"""Requests for text: what engines get of them, and that whatever is sent is answered in order."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupiterd.cluster.serving.field_checks import MAX_TOKENS, OF_CHAT, OF_COMPLETIONS
from jupiterd.cluster.serving.request_checks import CheckedRequest, checked_request
from jupiterd.cluster.serving.request_error import RequestError

HELLO = {"model": "promoted", "messages": [{"role": "user", "content": "hello"}]}
ONCE = {"model": "promoted", "prompt": "Once"}


def chat(**fields: Any) -> CheckedRequest:
    return checked_request(json.dumps({**HELLO, **fields}).encode(), is_chat=True)


def completion(**fields: Any) -> CheckedRequest:
    return checked_request(json.dumps({**ONCE, **fields}).encode(), is_chat=False)


def test_what_engines_get_has_no_model_and_no_field_that_is_null():
    found = chat(temperature=0.5, seed=None, stop="\n", metadata={"of": "the client"}, user="ann")
    assert found.model == "promoted"
    assert found.user == "ann"
    assert found.request.body == {
        "messages": [{"role": "user", "content": "hello"}],
        "temperature": 0.5,
        "stop": ["\n"],
        "stream": False,
    }


def test_a_conversation_becomes_text_in_roles_that_templates_know():
    parts = [{"type": "text", "text": "good "}, {"type": "text", "text": "day"}]
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    found = chat(
        messages=[
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None, "tool_calls": calls},
        ]
    )
    assert found.request.body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "good day"},
        {"role": "assistant", "content": "", "tool_calls": calls},
    ]


def test_the_newer_name_of_max_tokens_is_the_older_ones():
    assert chat(max_completion_tokens=7, max_tokens=9).request.body["max_tokens"] == 7


@pytest.mark.parametrize("prompt", ["a", ["a"]])
def test_a_list_of_one_prompt_is_that_prompt(prompt: object):
    assert completion(prompt=prompt).request.body["prompt"] == "a"


@pytest.mark.parametrize("prompts", [["a", "b"], [[1], [2, 3]], ["a", [1]], ["a"] * 64])
def test_each_prompt_of_several_is_a_request_with_the_same_fields(prompts: list[Any]):
    found = completion(prompt=prompts, max_tokens=3, stream=True).requests
    assert [each.body["prompt"] for each in found] == prompts
    assert all(each.body["max_tokens"] == 3 and each.is_streamed for each in found)


def test_a_refusal_knows_the_model_and_tells_others_nothing_of_the_text():
    with pytest.raises(RequestError) as caught:
        chat(messages=[{"role": "user", "content": {"my": "secret"}}])
    assert caught.value.model == "promoted"
    assert "secret" in caught.value.answer.message
    assert caught.value.answer.reason == "messages[0].content must be text, or a list of texts"


MEANINGFUL = [
    ("functions", [{"name": "f"}]),
    ("function_call", {"name": "f"}),
    ("modalities", ["text", "audio"]),
    ("web_search_options", {"search_context_size": "low"}),
    ("guided_json", {"type": "object"}),
    ("grammar", "root ::= [0-9]"),
    ("min_tokens", 4),
    ("ignore_eos", True),
    ("repeat_penalty", 1.1),
    ("typical_p", 0.9),
    ("skip_special_tokens", False),
    ("add_generation_prompt", False),
    ("n", 2),
]


@pytest.mark.parametrize(("name", "value"), MEANINGFUL)
@pytest.mark.parametrize("is_chat", [True, False])
def test_a_field_that_would_change_the_answer_is_refused_by_its_name(
    name: str, value: object, is_chat: bool
):
    assert refusal(chat if is_chat else completion, **{name: value}) == name


@pytest.mark.parametrize(
    ("ask", "name", "value"),
    [
        (chat, "best_of", 2),
        (chat, "echo", True),
        (chat, "response_format", {"type": "json_object"}),
        (completion, "tools", [{"type": "function"}]),
        (completion, "response_format", {"type": "json_object"}),
        (completion, "top_logprobs", 3),
    ],
)
def test_a_field_of_the_other_kind_is_refused_by_its_name(ask: Any, name: str, value: object):
    assert refusal(ask, **{name: value}) == name


WITHOUT_MEANING = {
    "n": 1, "tools": [], "logprobs": False, "response_format": {"type": "text"}, "logit_bias": {},
    "best_of": 1, "functions": [], "function_call": "none", "modalities": ["text"], "grammar": "",
    "min_tokens": 0, "ignore_eos": False, "repeat_penalty": 1.0, "skip_special_tokens": True,
    "store": False, "metadata": {"task": "title"}, "parallel_tool_calls": False, "user": "ada",
    "service_tier": "auto", "reasoning_effort": "low", "prediction": {"type": "content"},
    "chat_id": "7", "session_id": "8", "background_tasks": {}, "safety_identifier": "x",
}  # fmt: skip
"""What clients send that have set nothing: the openai package, LangChain, Open WebUI."""


@pytest.mark.parametrize("name", sorted(WITHOUT_MEANING))
def test_what_says_nothing_or_what_happens_anyway_is_taken(name: str):
    assert chat(**{name: WITHOUT_MEANING[name]}).request.is_chat


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_token", "max_tokens"), ("maxTokens", "max_tokens"), ("max-tokens", "max_tokens"),
        ("max_new_tokens", "max_tokens"), ("temprature", "temperature"), ("topP", "top_p"),
        ("stops", "stop"), ("modle", "model"), ("message", "messages"), ("strem", "stream"),
        ("presence_penality", "presence_penalty"), ("steam_options", "stream_options"),
    ],
)  # fmt: skip
def test_a_misspelt_field_is_refused_with_the_one_that_was_meant(name: str, meant: str):
    with pytest.raises(RequestError) as caught:
        chat(**{name: 0})
    answer = caught.value.answer
    assert (answer.status, answer.param, answer.code) == (400, name, "unknown_parameter")
    assert answer.message == f"{name}: there is no such field; did you mean {meant}?"
    assert caught.value.model == "promoted"


def test_what_is_misspelt_depends_on_what_is_asked_for():
    assert refusal(completion, prompts="Once") == "prompts"
    assert refusal(completion, bestof=1) == "bestof"
    assert completion(max_completion_tokens=4).request.body["prompt"] == "Once"


def test_a_request_of_thousands_of_unknown_fields_is_not_compared_name_by_name():
    few, many = ({"max_token": 1, **{f"x{each}": 0 for each in range(n)}} for n in (50, 5000))
    assert refusal(completion, **few) == "max_token"
    assert completion(**many).request.body["prompt"] == "Once"


OF_CLIENTS = (
    "chat_id", "session_id", "id", "message_id", "prompt_id", "tool_ids", "filter_ids", "features",
    "files", "variables", "params", "model_item", "tool_servers", "background_tasks", "options",
    "keep_alive", "think", "format", "system", "template", "num_ctx", "num_predict", "cache_prompt",
    "id_slot", "n_predict", "n_keep", "repeat_last_n", "mirostat_tau", "mirostat_eta", "dry_base",
    "top_a", "top_n_sigma", "tfs_z", "temperature_last", "dynamic_temperature", "mode", "models",
    "repetition_penalty_range", "provider", "route", "transforms", "plugins", "priority",
    "verbosity",
    "request_id", "return_token_ids", "include_stop_str_in_output", "spaces_between_special_tokens",
    "prompt_cache_key", "prompt_cache_retention", "thinking", "reasoning", "include_reasoning",
    "extra_body", "timeout", "tags", "speed", "stopping_strings", "stop_sequences", "min_keep",
)  # fmt: skip
"""Of Open WebUI, Ollama, llama.cpp, vLLM, text-generation-webui, OpenRouter, OpenAI, LiteLLM."""


@pytest.mark.parametrize("name", [*OF_CLIENTS, "max_token" * 99, "max_tokens\n", "", "ü"])
def test_a_field_of_a_client_s_own_is_taken(name: str):
    assert chat(**{name: "7"}).request.is_chat
    assert completion(**{name: "7"}).request.body["prompt"] == "Once"


def test_an_empty_prompt_is_told_as_that():
    for prompt in ([], [[]], ["a", []]):
        with pytest.raises(RequestError, match="empty list") as caught:
            completion(prompt=prompt)
        assert caught.value.answer.param == "prompt"


def test_what_a_harness_sends_for_a_completion_is_taken():
    """lm-evaluation-harness's `local-completions`, as it asks for a written answer."""
    found = completion(max_tokens=256, temperature=0, stop=["\n"], seed=1234).request
    assert found.body["seed"] == 1234


@pytest.mark.parametrize("prompt", [[1, 2], [[1, 2]]])
def test_a_prompt_may_be_ids_of_tokens(prompt: object):
    assert completion(prompt=prompt).request.body["prompt"] == [1, 2]


def test_usage_of_a_stream_is_asked_for_and_only_of_a_stream():
    assert chat(stream=True, stream_options={"include_usage": True}).wants_usage
    assert not chat(stream=True).wants_usage
    assert refusal(chat, stream_options={"include_usage": True}) == "stream_options"


def test_a_stream_is_told_to_the_engine_too():
    found = completion(stream=True, echo=True, max_tokens=0, logprobs=3).request
    assert found.is_streamed
    assert found.body["stream"] is True
    assert (found.body["echo"], found.body["max_tokens"], found.body["logprobs"]) == (True, 0, 3)


def refusal(ask: Any, **fields: Any) -> str | None:
    """Return which field is refused."""
    with pytest.raises(RequestError) as caught:
        ask(**fields)
    assert caught.value.answer.status == 400
    return caught.value.answer.param


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_tokens", 0),
        ("max_tokens", -1),
        ("max_tokens", MAX_TOKENS + 1),
        ("max_tokens", 10**300),
        ("max_tokens", 1.5),
        ("max_tokens", "12"),
        ("max_tokens", True),
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", "hot"),
        ("temperature", 10**400),
        ("top_p", 1.01),
        ("seed", 2**64),
        ("stop", ""),
        ("stop", ["a"] * 17),
        ("stop", {"a": 1}),
        ("n", 2),
        ("n", True),
        ("stream", "yes"),
        ("logit_bias", {"word": 1}),
        ("logit_bias", {"7": 101}),
        ("logprobs", 3),
        ("top_logprobs", 3),
        ("response_format", {"type": "json_schema"}),
        ("tools", {"a": 1}),
        ("model", 7),
    ],
)
def test_a_field_that_is_wrong_is_named(field: str, value: object):
    assert refusal(chat, **{field: value}) == field


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([], "messages"),
        ("hello", "messages"),
        (["hello"], "messages[0]"),
        ([{"role": "robot", "content": "a"}], "messages[0].role"),
        ([{"role": ["user"], "content": "a"}], "messages[0].role"),
        ([{"role": {}, "content": "a"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": []}], "messages[0].content"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}],
            "messages[0].content[0]",
        ),
    ],
)
def test_a_message_that_is_wrong_is_named(messages: object, named: str):
    assert refusal(chat, messages=messages) == named


@pytest.mark.parametrize(
    "prompt",
    [[], 7, ["a", 7], [[1], []], ["a"] * 65, [1, "a"], {"a": 1}, [[[1]]], [-1], [True], [2**31]],
)
def test_a_prompt_that_is_wrong_is_named(prompt: object):
    assert refusal(completion, prompt=prompt) == "prompt"


@pytest.mark.parametrize("field", ["best_of", "suffix"])
def test_what_no_engine_does_is_refused(field: str):
    assert refusal(completion, **{field: 2 if field == "best_of" else "end"}) == field


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"\xff",
        b'{"prompt": "\\ud800"}',
        b'{"prompt": "a", "temperature": NaN}',
        b"[" * 100_000,
        b'{"prompt": ' + b"[" * 700 + b"]" * 700 + b"}",
        b'{"prompt": ' + b"9" * 5000 + b"}",
        b'{"model": "promoted"}',
    ],
)
def test_what_is_no_request_is_told_in_the_form_of_openai(body: bytes):
    with pytest.raises(RequestError) as caught:
        checked_request(body, is_chat=False)
    told = json.loads(caught.value.answer.body())["error"]
    assert told["type"] == "invalid_request_error"
    assert told["message"]
    assert set(told) == {"message", "type", "param", "code"}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
FIELDS = sorted({*OF_CHAT, *OF_COMPLETIONS, "model", "messages", "prompt", "stream_options"})


def checked_or_refused(body: bytes, *, is_chat: bool) -> None:
    """Check that a request is taken, or refused with a status of the caller's fault."""
    refused: RequestError | None = None
    try:
        found = checked_request(body, is_chat=is_chat)
        assert json.loads(json.dumps(dict(found.request.body), allow_nan=False))
        assert "model" not in found.request.body
    except RequestError as error:
        refused = error
    if refused is not None:
        assert 400 <= refused.answer.status < 500
        assert json.loads(refused.answer.body())["error"]["message"]


@settings(max_examples=200)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_taken_or_refused(body: bytes, is_chat: bool):
    checked_or_refused(body, is_chat=is_chat)


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), st.booleans())
def test_any_fields_are_taken_or_refused(fields: dict[str, Any], is_chat: bool):
    whole = {**(HELLO if is_chat else ONCE), **fields}
    checked_or_refused(json.dumps(whole).encode(), is_chat=is_chat)
