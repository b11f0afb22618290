"""How much an engine takes, and the context that memory allows."""

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.engine_choice import LLAMA
from jupiterd.cluster.serving.engine_memory import (
    CACHE_SHARE,
    MOST_ANSWERS,
    SHORTEST_CONTEXT,
    has_room,
    model_context,
    needed_bytes,
    plan_cache,
    token_bytes,
)

GIB = 1 << 30
SMOLLM2 = {
    "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3,
    "hidden_size": 576, "max_position_embeddings": 8192,
}  # fmt: skip
GPT2 = {"n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024}


def test_a_tokens_cache_is_keys_and_values_of_all_layers():
    assert token_bytes(SMOLLM2) == 2 * 30 * 3 * 64 * 2
    assert token_bytes(GPT2) == 2 * 12 * 768 * 2


def test_the_context_is_the_models_own_where_there_is_room():
    plan = plan_cache(SMOLLM2, 270 << 20, 64 * GIB)
    assert (plan.context_tokens, plan.answers) == (8192, MOST_ANSWERS)
    assert plan_cache(GPT2, 500 << 20, 64 * GIB).context_tokens == 1024
    assert model_context({}) == 2048


def test_a_long_context_is_cut_before_memory_is_short():
    large = SMOLLM2 | {"max_position_embeddings": 131_072}
    plan = plan_cache(large, GIB, 5 * GIB)
    assert (plan.context_tokens, plan.answers) == (GIB // token_bytes(large), 1)


@given(st.integers(1, 1 << 20), st.integers(0, 64 * GIB), st.integers(0, 256 * GIB))
def test_the_cache_takes_no_more_than_its_share(longest: int, weights: int, free: int):
    plan = plan_cache(SMOLLM2 | {"max_position_embeddings": longest}, weights, free)
    assert 1 <= plan.answers <= MOST_ANSWERS
    assert min(longest, SHORTEST_CONTEXT) <= plan.context_tokens <= longest
    least = min(longest, SHORTEST_CONTEXT) * token_bytes(SMOLLM2)
    assert plan.size_bytes <= max(least, CACHE_SHARE * max(0, free - weights))


def test_two_models_that_dont_fit_together_have_no_room():
    cache = plan_cache(GPT2, 2 * GIB, 5 * GIB)
    needed = needed_bytes(LLAMA, 2 * GIB, cache)
    assert has_room(needed, 5 * GIB)
    assert not has_room(needed, 5 * GIB, promised_bytes=needed)
