"""The answers to several prompts of one request, told as one."""

from typing import Any

from jupiterd.cluster.serving.joined_answers import joined_answer


def answer(text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": text,
        "object": "text_completion",
        "choices": [{"index": 0, "text": text}],
        **more,
    }


def test_choices_stand_in_the_order_of_prompts_and_tokens_are_summed() -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 1, "details": {"cached": 1}}
    whole = joined_answer([answer("one", usage=usage), answer("two", usage=usage)])
    assert [(each["index"], each["text"]) for each in whole["choices"]] == [(0, "one"), (1, "two")]
    assert whole["usage"] == {"prompt_tokens": 4, "completion_tokens": 2}
    assert (whole["id"], whole["object"]) == ("one", "text_completion")


def test_how_long_the_first_one_took_is_not_told_as_if_all_took_so_long() -> None:
    timings = {"predicted_n": 12, "predicted_ms": 292.3}
    whole = joined_answer([answer("one", timings=timings), answer("two", timings=timings)])
    assert "timings" not in whole


def test_answers_without_a_count_of_tokens_have_none_together() -> None:
    assert "usage" not in joined_answer([answer("one"), answer("two", usage=None)])
