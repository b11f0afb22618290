"""What an engine is sent, and which prompts must be counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.answer_request import AnswerRequest
from jupiterd.cluster.serving.engine_choice import LLAMA, MLX, TRANSFORMERS
from jupiterd.cluster.serving.engine_request import (
    body_for,
    check_length,
    could_be_too_long,
    is_gathered,
)
from jupiterd.errors import PromptTooLongError


def chat(text: str = "hi", *, is_streamed: bool = False, **fields: object) -> AnswerRequest:
    body = {"messages": [{"role": "user", "content": text}], **fields}
    return AnswerRequest(is_chat=True, body=body, is_streamed=is_streamed)


def completion(prompt: object = "hi", **fields: object) -> AnswerRequest:
    return AnswerRequest(is_chat=False, body={"prompt": prompt, **fields}, is_streamed=False)


def test_a_chat_may_write_as_much_as_the_context_and_a_completion_16_tokens():
    assert body_for(LLAMA, "model", chat(), 512)["max_tokens"] == 512
    assert body_for(LLAMA, "model", completion(), 512)["max_tokens"] == 16
    assert body_for(LLAMA, "model", completion(max_tokens=1 << 60), 512)["max_tokens"] == 512


def test_the_newer_name_of_max_tokens_counts():
    sent = body_for(MLX, "default_model", chat(max_completion_tokens=7, max_tokens=9), 512)
    assert sent["max_tokens"] == 7
    assert "max_completion_tokens" not in sent


@pytest.mark.parametrize("engine", [MLX, TRANSFORMERS])
def test_an_answer_that_can_only_be_cancelled_in_a_stream_is_asked_for_as_one(engine: str):
    sent = body_for(engine, "m", chat(), 512)
    assert (sent["stream"], sent["stream_options"]) == (True, {"include_usage": True})
    assert not is_gathered(engine, chat(is_streamed=True))
    assert not is_gathered(engine, chat(logprobs=True))
    assert not is_gathered(engine, completion(logprobs=0))
    assert not is_gathered(engine, completion(n=2))


def test_llama_cpp_is_asked_as_the_client_asked():
    assert body_for(LLAMA, "m", chat(), 512)["stream"] is False
    assert "stream_options" not in body_for(LLAMA, "m", chat(), 512)


def test_mlx_lm_has_words_of_its_own_for_the_logprobs_of_completions():
    sent = body_for(MLX, "m", completion(logprobs=5), 512)
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 5)


def test_a_short_prompt_needs_no_counting():
    assert not could_be_too_long(completion("a" * 511), 512)
    assert could_be_too_long(completion("a" * 512), 512)
    assert could_be_too_long(completion(list(range(64))), 512)
    assert not could_be_too_long(chat("a" * 400), 1024)
    assert could_be_too_long(chat("a" * 600), 1024)  # the template adds to it


@given(st.text(max_size=60), st.integers(1, 400))
def test_whoever_has_more_bytes_than_the_context_has_tokens_is_counted(text: str, context: int):
    assert could_be_too_long(completion(text), context) == (len(text.encode()) >= context)


def test_a_prompt_that_is_too_long_is_told_with_both_numbers():
    check_length(511, 512)
    with pytest.raises(PromptTooLongError, match="3,001 tokens, and the model's context 1,024"):
        check_length(3001, 1024)
