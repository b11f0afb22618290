"""What all ranks of a gang must mean alike before they train, and who doesn't.

Owns the form in which it is told, and the sentence about whoever differs. Doesn't know how numbers
travel between ranks. A short form is enough as long as all agree; only then are whole texts sent.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from jupiterd.cycle.training.gradient_sync import digits

MAX_TELEMETRY_BYTES = 1 << 16
"""Of one rank's text; what is longer is compared by its short form alone."""

_SHOWN_DIFFERENCES = 3
_MAX_VALUE_CHARS = 60

Agreement = Mapping[str, Any]
"""Names -> plain values; may be nested."""


def text_of(agreement: Agreement) -> bytes:
    """Return it as text: equal ones have equal texts."""
    return json.dumps(agreement, sort_keys=True).encode()


def short_form(text: bytes) -> list[float]:
    """Return numbers that stand for a text, and its length; float32 carries them exactly."""
    return [*map(float, digits(text)), float(min(len(text), MAX_TELEMETRY_BYTES))]


def text_length(short_forms: Sequence[Sequence[float]]) -> int:
    """Return how many bytes each rank tells, once the short forms differ; 0 where they are equal.

    It is the length of the longest text.
    """
    first = list(short_forms[0])
    if all(list(other) == first for other in short_forms):
        return 0
    return int(max(form[-1] for form in short_forms))


def as_numbers(text: bytes, length: int) -> list[float]:
    """Return a text as numbers, a byte each, as many as all ranks tell."""
    return list(map(float, text[:length].ljust(length, b" ")))


def disagreement(rows: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """Say which ranks mean something else than most of them, and what; empty where none does.

    Where two differ, the first counts as right: nobody knows better.

    Args:
        rows: each rank's text as numbers.
        names: of each rank's node; ranks beyond them are told by number alone.
    """
    texts = [bytes(map(int, row)).strip() for row in rows]
    (usual, _), *_ = Counter(texts).most_common()
    found = [
        f"{_place(rank, names)}: {_differences(_fields(text), _fields(usual))}"
        for rank, text in enumerate(texts)
        if text != usual
    ]
    return "; ".join(found)


def _place(rank: int, names: Sequence[str]) -> str:
    return f"{names[rank]} (rank {rank})" if rank < len(names) else f"rank {rank}"


def _differences(found: Mapping[str, str], usual: Mapping[str, str]) -> str:
    """Return what has another value there than elsewhere, the first few."""
    names = [name for name in sorted({*found, *usual}) if found.get(name) != usual.get(name)]
    parts = [
        f"{name} is {found.get(name, 'missing')} there and {usual.get(name, 'missing')} elsewhere"
        for name in names[:_SHOWN_DIFFERENCES]
    ]
    more = len(names) - len(parts)
    return ", ".join([*parts, *([f"and {more} more"] if more > 0 else [])]) or "it can't be told"


def _fields(text: bytes) -> dict[str, str]:
    """Return the values by their dotted names; none where the text was too long to be told."""
    try:
        loaded: object = json.loads(text)
    except ValueError:
        return {}
    return dict(_leaves("", loaded))


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from _leaves(f"{name}.{key}" if name else key, inner)
    else:
        yield name, json.dumps(value)[:_MAX_VALUE_CHARS]
