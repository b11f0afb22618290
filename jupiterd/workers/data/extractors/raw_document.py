"""What a reader is given of a document.

Owns that form alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class RawDocument:
    """A document as it was found."""

    data: bytes
    name: str = ""
    """By whose ending its kind is known: a file's name, or an address."""
    url: str = ""
    """Its links are relative to it."""
    charset: str = ""
    """What its sender says; empty: nothing."""
    language: str = ""
    """What texts of its source are written in, by which encodings are told apart."""
