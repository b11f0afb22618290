"""A document of the daemon that a screen watches in addition to the status.

Pure. Owns the value alone. Doesn't know how a document is requested.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """One document of the daemon."""

    noun: str
    """Such as `cycles` or `node/7600fc64`."""
    every_s: float | None = None
    """Seconds between two requests; None: watched, for documents that the daemon has in memory."""
