"""One answer out of those to several prompts of a request for completions.

Owns their order, and the sum of what they cost. Pure. Doesn't know who answers each.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

_OF_ONE_ANSWER: Final = frozenset({"timings", "usage"})


def joined_answer(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the answers to prompts, in their order, as one with a choice for each.

    What only the first one's engine measured, such as llama.cpp's `timings`, is left out.
    """
    usage = summed_usage(_mapping(each.get("usage")) for each in answers)
    choices = [placed(choice, place) for place, each in enumerate(answers) for choice in _of(each)]
    first = {name: value for name, value in answers[0].items() if name not in _OF_ONE_ANSWER}
    whole = {**first, "choices": choices}
    return whole | ({"usage": usage} if usage else {})


def placed(choice: Mapping[str, Any], place: int) -> dict[str, Any]:
    """Return a choice as the answer to the prompt at that place."""
    return {**choice, "index": place}


def summed_usage(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sum of what answers cost, in tokens; details of one engine are left out."""
    found: dict[str, int] = {}
    for usage in usages:
        for name, count in usage.items():
            if isinstance(count, int) and not isinstance(count, bool):
                found[name] = found.get(name, 0) + count
    return found


def _of(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = answer.get("choices")
    found = cast("list[object]", choices) if isinstance(choices, list) else []
    return [_mapping(each) for each in found]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
