"""The paths that a command names on this machine's own command line.

Owns which commands have text read, and where their paths stand. Doesn't know what is done with
them (`offered_paths`).
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from jupiterd.cycle.data.local_paths import local_paths, paths_of_sources
from jupiterd.errors import InvalidDomainError

if TYPE_CHECKING:
    from jupiterd.cycle.domain.data_sources import DataSource

READING: Final = frozenset({"cycle.start", "data.prepare", "train.start"})
"""The commands by which text is read from a disk."""


def named_paths(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """Return them; none of a domain that has mistakes, with which nothing begins."""
    source: Mapping[str, Any] = arguments.get("source") or {}
    return (*(local_paths("prepare", source) if source else ()), *_of_domain(arguments))


def _of_domain(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    if "domain_yaml" not in arguments:
        return ()
    from jupiterd.cycle.domain.domain import parse_domain  # its models take 8 MB, idle or not

    try:
        domain = parse_domain(str(arguments["domain_yaml"]), "domain.yaml")
    except InvalidDomainError:
        return ()
    return paths_of(domain.data_sources)


def paths_of(sources: "Sequence[DataSource]") -> tuple[str, ...]:
    """Return the paths that the sources of a domain name, as orders will have them."""
    return paths_of_sources([each.model_dump(mode="json") for each in sources])
