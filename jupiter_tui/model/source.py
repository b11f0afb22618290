"""What a screen listens to, beside the status.

Pure. Owns what a source is. Doesn't know how one is asked.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """One document of the daemon."""

    noun: str
    """Such as `cycles` or `node/7600fc64`."""
    every_s: float | None = None
    """How often it is asked for; None: watched, for documents that the daemon holds in memory."""
