"""What an engine can't heed is refused by its name, and never left out in silence."""

from typing import Any

import pytest

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import LLAMA, MLX, TRANSFORMERS, VLLM
from jupiterd.cluster.serving.engine_fields import heeded_fields
from jupiterd.cluster.serving.request_error import answer_of
from jupiterd.errors import UnsupportedFieldError

TOOLS = [{"type": "function", "function": {"name": "weather"}}]


def asked(engine: str, *, is_chat: bool = True, is_streamed: bool = False, **fields: Any) -> Any:
    return heeded_fields(engine, AnswerRequest(is_chat, fields, is_streamed))


@pytest.mark.parametrize(
    ("engine", "name", "fields"),
    [
        (LLAMA, "echo", {"is_chat": False, "echo": True}),
        (MLX, "echo", {"is_chat": False, "echo": True}),
        (MLX, "prompt", {"is_chat": False, "prompt": [1, 2]}),
        (MLX, "tool_choice", {"tools": TOOLS, "tool_choice": "required"}),
        (MLX, "logprobs", {"logprobs": True, "is_streamed": True}),
        (MLX, "logprobs", {"is_chat": False, "logprobs": 11}),
        (MLX, "top_logprobs", {"logprobs": True, "top_logprobs": 11}),
        (TRANSFORMERS, "logprobs", {"logprobs": True}),
        (TRANSFORMERS, "logprobs", {"is_chat": False, "logprobs": 0}),
        (TRANSFORMERS, "logit_bias", {"is_chat": False, "logit_bias": {"7": 1}}),
        (TRANSFORMERS, "presence_penalty", {"presence_penalty": 0.5}),
        (TRANSFORMERS, "frequency_penalty", {"frequency_penalty": -1}),
        (TRANSFORMERS, "repetition_penalty", {"repetition_penalty": 1.1}),
        (TRANSFORMERS, "top_k", {"top_k": 5}),
        (TRANSFORMERS, "tool_choice", {"tools": TOOLS, "tool_choice": "required"}),
    ],
)
def test_a_field_is_refused_that_an_engine_would_leave_out(
    engine: str, name: str, fields: dict[str, Any]
):
    with pytest.raises(UnsupportedFieldError) as raised:
        asked(engine, **fields)
    told = answer_of(raised.value)
    assert (told.status, told.param, told.code) == (400, name, "unsupported_field")
    assert engine in told.message


@pytest.mark.parametrize("engine", [LLAMA, MLX, TRANSFORMERS, VLLM])
def test_what_changes_nothing_is_taken(engine: str):
    usual = {"logprobs": False, "top_logprobs": 0, "presence_penalty": 0, "top_k": 0, "min_p": 0.0}
    found = asked(engine, messages=[], tools=[], tool_choice="auto", logit_bias={}, **usual)
    assert found["messages"] == []
    assert not {"tools", "tool_choice"} & set(found)


def test_transformers_is_sent_no_field_that_its_server_refuses():
    assert asked(TRANSFORMERS, top_k=0, min_p=0, repetition_penalty=1.0, temperature=0.5) == {
        "temperature": 0.5
    }
    assert asked(TRANSFORMERS, logit_bias={}) == {}
    (bias,) = asked(TRANSFORMERS, logit_bias={"7": -100})["logit_bias"].values()
    assert (type(bias), bias) == (float, -100.0), "a whole number ends its answer"


def test_tools_that_are_not_to_be_used_are_left_out():
    assert asked(MLX, tools=TOOLS, tool_choice="none") == {}
    assert asked(LLAMA, tools=TOOLS, tool_choice="required")["tool_choice"] == "required"


def test_llama_cpp_hears_of_the_penalty_by_the_name_that_it_knows():
    assert asked(LLAMA, repetition_penalty=1.2) == {"repeat_penalty": 1.2}


def test_each_engine_is_asked_for_likelihoods_in_its_own_words():
    assert asked(LLAMA, is_chat=False, logprobs=0) == {"logprobs": 1}
    assert asked(LLAMA, logprobs=True) == {"logprobs": True, "top_logprobs": 1}
    assert asked(MLX, is_chat=False, logprobs=0) == {"logprobs": True, "top_logprobs": 0}
    assert asked(MLX, logprobs=True, top_logprobs=3) == {"logprobs": True, "top_logprobs": 3}
    assert asked(VLLM, is_chat=False, logprobs=0, echo=True) == {"logprobs": 0, "echo": True}
