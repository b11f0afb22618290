"""Whether what came off the wire is what a fact's fields declare.

Owns this check alone. A check is built once for each type: a snapshot brings a hundred thousand
facts at once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, cast, get_args, get_origin

from jupiterd.cluster.facts import Fact, KnownFact, UnknownFact

Check = Callable[[Any], bool]

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
    return tuple((f.name, _exact(f.type), _check_for(f.type)) for f in fields(kind))


def _exact(annotation: Any) -> type | None:  # noqa: ANN401 - that is what annotations are
    kind = getattr(annotation, "__supertype__", annotation)
    return kind if kind in (str, int, float, bytes, bool) else None


@cache
def _check_for(annotation: Any) -> Check:  # noqa: ANN401 - that is what annotations are
    kind = getattr(annotation, "__supertype__", annotation)
    inner = [_check_for(argument) for argument in get_args(kind) if argument is not Ellipsis]
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
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)


def is_plain(value: object, depth: int = MAX_DEPTH) -> bool:
    """Say whether a value of an unknown fact is one that every node can hold, sort and hash.

    Numbers, texts, bytes, and lists and maps of those, the keys texts, not nested deeper than
    MAX_DEPTH.
    """
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return True
    if depth == 0:
        return False
    if isinstance(value, list | tuple):
        return all(is_plain(item, depth - 1) for item in cast("Sequence[object]", value))
    if isinstance(value, dict):
        items = cast("Mapping[object, object]", value).items()
        return all(isinstance(key, str) and is_plain(item, depth - 1) for key, item in items)
    return False
