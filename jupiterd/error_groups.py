"""The errors inside a group that a TaskGroup raised.

Owns finding them. Doesn't know what any of them means (`errors`).
"""

from jupiterd.errors import JupiterError


def all_of(group: BaseExceptionGroup[JupiterError]) -> list[JupiterError]:
    """Return every error inside a group of a TaskGroup, however deep."""
    found = (all_of(e) if isinstance(e, BaseExceptionGroup) else [e] for e in group.exceptions)
    return [error for errors in found for error in errors]
