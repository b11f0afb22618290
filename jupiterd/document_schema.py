"""The form of every JSON document that leaves Jupiter: its name, and which numbers it may hold.

Owns the name. Under one name keys may be added and none changes its meaning, so whoever reads a
document skips what it doesn't know. Doesn't know any document.
"""

import math
from typing import Any, Final, TypeVar, cast

SCHEMA: Final = "jupiter/v1"

Value = TypeVar("Value")


def finite(value: Value) -> Value | None:
    """Return a value for a document: JSON knows neither infinity nor what is no number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def with_finite_numbers(document: object) -> Any:  # noqa: ANN401 - as it came
    """Return a document in which such numbers are null, wherever they stand."""
    if isinstance(document, dict):
        plain = cast("dict[str, object]", document)
        return {name: with_finite_numbers(value) for name, value in plain.items()}
    if isinstance(document, list | tuple):
        return [with_finite_numbers(each) for each in cast("list[object]", document)]
    return finite(document)
