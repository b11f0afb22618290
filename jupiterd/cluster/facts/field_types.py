"""Whether what came off the wire is what a fact's fields declare, its numbers within their bounds.

Owns this check alone. A check is built once for each type: a snapshot brings a hundred thousand
facts at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Final, cast, get_args, get_origin

from jupiterd.cluster.facts.facts import Fact, KnownFact, UnknownFact
from jupiterd.cluster.values.bounds import is_count, is_real

Check = Callable[[Any], bool]

MAYBE_UNKNOWN: Final = frozenset({"loss", "val_bpb", "counts", "summary", "horizon"})
"""Fields with a float that may be infinite or no number: what diverged, or nobody could measure."""

MAX_DEPTH = 8
"""How deep lists and maps of unknown facts may be nested."""


def is_well_formed(fact: Fact) -> bool:
    """Say whether every field of a fact that came off the wire holds what it declares."""
    if isinstance(fact, UnknownFact):
        return is_plain(fact.body)
    for name, exact, check in _checks_of(type(fact)):
        value = getattr(fact, name)
        if type(value) is not exact and not check(value):
            return False
    return True


@cache
def _checks_of(kind: type[KnownFact]) -> tuple[tuple[str, type | None, Check], ...]:
    """Return each field with the type that is nearly always there, and the check for any other."""
    return tuple(
        (f.name, _exact(f.type), _check_for(f.type, f.name in MAYBE_UNKNOWN)) for f in fields(kind)
    )


def _exact(annotation: Any) -> type | None:  # noqa: ANN401 - that is what annotations are
    kind = getattr(annotation, "__supertype__", annotation)
    return kind if kind in (str, bytes, bool) else None  # numbers have bounds


@cache
def _check_for(annotation: Any, may_be_unknown: bool) -> Check:  # noqa: ANN401, FBT001
    kind = getattr(annotation, "__supertype__", annotation)
    arguments = [argument for argument in get_args(kind) if argument is not Ellipsis]
    inner = [_check_for(argument, may_be_unknown) for argument in arguments]
    if isinstance(kind, UnionType):
        return lambda value: any(check(value) for check in inner)
    if get_origin(kind) is tuple:
        return lambda value: isinstance(value, tuple) and all(map(inner[0], value))
    if get_origin(kind) is Mapping:
        return lambda value: (
            (type(value) is dict or isinstance(value, Mapping))
            and all(map(inner[0], value))
            and all(map(inner[1], value.values()))
        )
    if kind is float:
        return _is_float_or_unknown if may_be_unknown else _is_float
    if kind is int:
        return lambda value: isinstance(value, int) and type(value) is not bool and is_count(value)
    return lambda value: isinstance(value, kind)


def _is_float(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and is_real(value)


def _is_float_or_unknown(value: object) -> bool:
    return _is_float(value) or (isinstance(value, float) and not math.isfinite(value))


def is_plain(value: object, depth: int = MAX_DEPTH) -> bool:
    """Say whether a value of an unknown fact is one that every node can hold, sort and hash.

    Bounded numbers, texts, bytes, and lists and maps of those, the keys texts, not nested deeper
    than MAX_DEPTH.
    """
    if value is None or isinstance(value, str | bytes):
        return True
    if isinstance(value, int | float):
        return is_count(value) if isinstance(value, int) else is_real(value)
    if depth == 0:
        return False
    if isinstance(value, list | tuple):
        return all(is_plain(item, depth - 1) for item in cast("Sequence[object]", value))
    if isinstance(value, dict):
        items = cast("Mapping[object, object]", value).items()
        return all(isinstance(key, str) and is_plain(item, depth - 1) for key, item in items)
    return False
