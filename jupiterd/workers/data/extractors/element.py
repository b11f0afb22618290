"""What is used of an element of lxml, which has no types of its own.

Owns that list. Doesn't know documents.
"""

from collections.abc import Iterator
from typing import Protocol


class Element(Protocol):
    """An element of HTML or XML."""

    tag: object
    """A text, or a function where it is a comment."""

    def get(self, key: str) -> str | None:
        """Return an attribute."""
        ...

    def iter(self) -> "Iterator[Element]":
        """Yield it and everything below it."""
        ...

    def itertext(self) -> Iterator[str]:
        """Yield the texts in it."""
        ...

    def xpath(self, path: str) -> list[object]:
        """Return what a path leads to."""
        ...

    def __iter__(self) -> "Iterator[Element]": ...
