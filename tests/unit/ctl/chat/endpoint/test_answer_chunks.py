"""What the endpoint tells of models and answers, well or oddly."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupiterd.ctl.chat.endpoint.answer_chunks import Chunk, ModelFacts, chunk_of, facts_of
from jupiterd.errors import EngineLostError, JupiterError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "content", "usage", "text", "error", "jupiter", "chat"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


def test_facts_are_taken_where_they_are_told():
    jupiter = {"chat": False, "context_tokens": 2048, "node": "nuc", "engine": "mlx"}
    told = json.dumps({"id": "x", "jupiter": jupiter}).encode()
    assert facts_of("python/2", told) == ModelFacts("python/2", False, 2048, "nuc", "mlx")
    assert facts_of("python/2", b'{"id": "x"}') == ModelFacts("python/2")
    assert facts_of("m", b'{"jupiter": {"chat": "yes", "node": "a\\u001b"}}') == ModelFacts(
        "m", node="a?"
    )
    assert facts_of("m", b"<html>") == ModelFacts("m")


def test_chats_and_completions_bring_text():
    assert chunk_of('{"choices": [{"delta": {"role": "assistant", "content": null}}]}') == Chunk()
    assert chunk_of('{"choices": [{"delta": {"content": "a"}}]}') == Chunk("a")
    assert chunk_of('{"choices": [{"text": "b", "finish_reason": "length"}]}') == Chunk(
        "b", finish="length"
    )
    thought = '{"choices": [{"delta": {"reasoning": "hm"}}]}'
    assert chunk_of(thought) == Chunk(thought="hm")
    assert chunk_of(thought.replace("reasoning", "reasoning_content")) == Chunk(thought="hm")
    usage = {"prompt_tokens": 3, "completion_tokens": None}
    assert chunk_of(json.dumps({"choices": [], "usage": usage})) == Chunk(prompt_tokens=3)


def test_an_error_is_raised():
    with pytest.raises(EngineLostError, match="it died"):
        chunk_of('{"error": {"message": "it died", "code": "engine_lost"}}')
    with pytest.raises(JupiterError, match="can't be read"):
        chunk_of("odd")


@given(VALUES)
def test_odd_events_bring_text_or_an_error_of_ours(told):
    with suppress(JupiterError):
        assert isinstance(chunk_of(json.dumps(told)).text, str)
    assert facts_of("m", json.dumps(told).encode()).name == "m"
