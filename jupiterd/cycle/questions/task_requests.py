"""What tasks ask a model, as lines of text: the form in which requests and answers travel.

Pure. Owns which requests may be answered on another machine: plain data with the usual settings, so
that nobody's task brings code there. Doesn't know tasks, or how a model answers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from jupiterd.errors import MalformedError

CONTINUED, WHOLE, WRITTEN = "loglikelihood", "loglikelihood_rolling", "generate_until"
"""The harness's names: how likely a text goes on so, how likely a text is, and how it goes on."""

MOST_REQUESTS: Final = 64
"""Of a batch: what a slow machine has begun is lost with it."""

FEWEST_REQUESTS: Final = 16
"""So many a GPU takes at a time."""

BATCHES_EACH: Final = 8
"""For each machine at least, so that fast ones answer more, and none waits long at the end."""

MAX_BATCH_BYTES: Final = 512 << 10
"""Of the requests of a batch, but for one that is longer alone."""

MAX_TRAVELLING_BYTES: Final = 1 << 20
"""A batch that is longer stays on the machine that asks."""

MAX_ANSWERS_BYTES: Final = 2 << 20

_TEXTS: Final[Mapping[str, int]] = {CONTINUED: 2, WHOLE: 1, WRITTEN: 1}
_NUMBERS: Final = frozenset({"max_gen_toks", "max_new_tokens", "max_tokens", "max_length",
                             "temperature", "top_p", "top_k", "repetition_penalty"})  # fmt: skip
_GREEDY: Final = "do_sample"
_UNTIL: Final = "until"


@dataclass(frozen=True)
class TaskRequest:
    """One question of the harness to a model."""

    kind: str
    texts: tuple[str, ...]
    settings: Mapping[str, Any]
    """Of a text that is written; empty for the others."""

    @property
    def travels(self) -> bool:
        """Say whether another machine may answer it, with the same result.

        Drawing lots isn't the same in another order, and a setting that isn't known might make a
        library load something. The harness draws where a temperature is said, unless it is told not
        to.
        """
        is_plain = all(map(_is_plain, self.settings, self.settings.values()))
        return is_plain and (_GREEDY in self.settings or not self.settings.get("temperature"))


def requests_text(requests: Iterable[TaskRequest]) -> str:
    """Return requests as lines."""
    return "".join(json.dumps([each.kind, *each.texts, *_last(each)]) + "\n" for each in requests)


def read_requests(text: str) -> list[TaskRequest]:
    """Return the requests of some lines.

    Raises:
        MalformedError: they are none.
    """
    return [_request(row) for row in _rows(text)]


def travelling_requests(text: str) -> list[TaskRequest]:
    """Return requests from another machine.

    Raises:
        MalformedError: they are none, or might do more than ask a model.
    """
    found = read_requests(text)
    if not found or len(found) > MOST_REQUESTS or not all(each.travels for each in found):
        raise MalformedError("a batch of a task's requests isn't one that travels")
    return found


def answers_text(answers: Iterable[object]) -> str:
    """Return answers as lines."""
    return "".join(json.dumps([each]) + "\n" for each in answers)


def read_answers(text: str, requests: Sequence[TaskRequest]) -> list[Any]:
    """Return the answers to requests, in their order.

    Raises:
        MalformedError: they can't be those.
    """
    found = [row[0] for row in _rows(text) if len(row) == 1]
    if len(found) != len(requests):
        raise MalformedError(f"{len(requests)} requests of a task have {len(found)} answers")
    return [_answer(each.kind, answer) for each, answer in zip(requests, found, strict=True)]


def batches_of(requests: Sequence[TaskRequest], machines: int) -> list[Sequence[TaskRequest]]:
    """Return the pieces in which what one call of the harness asks is handed out, in its order.

    Where any of it can't travel all of it is one piece: lots are drawn one after another.
    """
    if not all(each.travels for each in requests):
        return [requests]
    fair = -(-len(requests) // (BATCHES_EACH * machines))
    return [*_cut(requests, min(MOST_REQUESTS, max(FEWEST_REQUESTS, fair)))]


def _cut(requests: Sequence[TaskRequest], most: int) -> Iterator[Sequence[TaskRequest]]:
    start = size = 0
    for at, request in enumerate(requests):
        added = len(requests_text((request,)))
        if at > start and (at - start >= most or size + added > MAX_BATCH_BYTES):
            yield requests[start:at]
            start, size = at, 0
        size += added
    if start < len(requests):
        yield requests[start:]


def _last(request: TaskRequest) -> list[Mapping[str, Any]]:
    return [dict(request.settings)] if request.kind == WRITTEN else []


def _is_plain(name: str, value: object) -> bool:
    if name == _GREEDY:
        return value is False
    if name == _UNTIL:
        texts = cast("list[object]", value) if isinstance(value, list) else [value]
        return all(isinstance(text, str) for text in texts)
    return name in _NUMBERS and isinstance(value, int | float)


def _rows(text: str) -> list[list[Any]]:
    try:
        found = [json.loads(line) for line in text.splitlines()]
    except (ValueError, RecursionError) as error:
        raise MalformedError("a batch of a task's requests can't be read") from error
    if not all(isinstance(row, list) for row in found):
        raise MalformedError("a batch of a task's requests can't be read")
    return found


def _request(row: list[Any]) -> TaskRequest:
    kind = row[0] if row else None
    texts = _TEXTS.get(kind, 0) if isinstance(kind, str) else 0
    settings = row[-1] if kind == WRITTEN else {}
    is_whole = len(row) == 1 + texts + (kind == WRITTEN)
    are_texts = all(isinstance(text, str) for text in row[1 : 1 + texts])
    if not texts or not is_whole or not are_texts or not isinstance(settings, dict):
        raise MalformedError("a task's request has a form that can't be")
    return TaskRequest(cast("str", kind), tuple(row[1 : 1 + texts]), settings)


def _answer(kind: str, answer: object) -> object:
    if kind == WRITTEN and isinstance(answer, str):
        return answer
    if kind == WHOLE and isinstance(answer, float):
        return answer
    if kind == CONTINUED and isinstance(answer, list):
        pair = cast("list[object]", answer)
        if len(pair) == 2 and isinstance(pair[0], float) and isinstance(pair[1], bool):
            return pair[0], pair[1]
    raise MalformedError("an answer to a task's request has a form that can't be")
