"""Whether what came off the wire is what a fact's fields declare.

Owns this check alone. A check is built once for each type: a snapshot brings a hundred thousand
facts at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin

from jupiterd.cluster.facts import KnownFact

Check = Callable[[Any], bool]


def has_declared_types(fact: KnownFact) -> bool:
    """Say whether every field of the fact holds what it declares."""
    return all(check(getattr(fact, name)) for name, check in _checks_of(type(fact)))


@cache
def _checks_of(kind: type[KnownFact]) -> tuple[tuple[str, Check], ...]:
    return tuple((field.name, _check_for(field.type)) for field in fields(kind))


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
            isinstance(value, Mapping)
            and all(map(inner[0], value))
            and all(map(inner[1], value.values()))
        )
    if kind is float:
        return lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return lambda value: isinstance(value, int) and not isinstance(value, bool)
    return lambda value: isinstance(value, kind)
