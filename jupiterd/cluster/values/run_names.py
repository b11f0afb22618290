"""Which cycle, run or data set people mean: by its name, its id, or the beginning of one.

Owns the rule. Doesn't know what has a name; `node_names` has the one for machines.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from jupiterd.errors import UsageError
from jupiterd.ids import short

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Named(Generic[Thing]):
    """Something that people may mean."""

    thing: Thing
    name: str
    ids: Sequence[str]


def is_round_name(text: str) -> bool:
    """Say whether it is how lists call a cycle's round, such as python/2; ./2 is a path."""
    return re.fullmatch(r"[^/.~][^/]*/\d+", text) is not None


def meant(things: Iterable[Named[Thing]], wanted: str) -> list[Thing]:
    """Return all that are called exactly so; where none is, those whose id begins so.

    Raises:
        UsageError: different ids begin so.
    """
    known = list(things)
    if exact := [each.thing for each in known if wanted in (each.name, *each.ids)]:
        return exact
    begun = [(each, id_) for each in known for id_ in each.ids if wanted and id_.startswith(wanted)]
    ids = sorted({id_ for _, id_ in begun})
    if len(ids) > 1:
        could = ", ".join(map(short, ids))
        raise UsageError(f"{wanted} could be any of {could}", "give more of the id, or the name")
    return [each.thing for each, _ in begun]
